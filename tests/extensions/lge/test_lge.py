"""LGE: which actions are candidates, when the Guide is heeded, and that learning is DRRN's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from magrounding.agents.building import make_policy
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig
from magrounding.extensions.lge.guide import Guide, save_guide
from magrounding.extensions.lge.guide.encoder import HashedEncoder
from magrounding.extensions.lge.guide.metrics import top_k
from magrounding.extensions.lge.learner import LgeLearnerConfig
from magrounding.spec import CHOICES, EPISODE, SCORE, SCORES, STEP, EnvSpec, Mask, Text, TextChoices
from magrounding.teams.player import Player, shown_to
from tests.many_choices import SPEC as MANY
from tests.many_choices import make_actor

WORDS = (
    "<pad>",
    "go",
    "to",
    "teleport",
    "boil",
    "eat",
    "water",
    "lead",
    "soap",
    "kitchen",
    "hall",
    "goat",
    "pot",
    "on",
)
IDS = {word: i for i, word in enumerate(WORDS)}
ACTIONS = [
    *(f"{verb} {thing}" for verb in ("boil", "eat", "pot") for thing in ("water", "lead", "soap", "pot", "goat")),
    "go to kitchen",
    "go to hall",
    "teleport to hall",
    "goat to hall",
    "go on",
]
MOST = 24
SPEC = EnvSpec(
    fields=(
        Text("task", (4,), 0, 13, shared=True, lifetime=EPISODE),
        Text("observation", (3,), 0, 13, lifetime=STEP),
        Text(CHOICES, (MOST, 3), 0, 13, lifetime=STEP),
        Mask("action_mask", (MOST,)),
    ),
    num_agents=1,
    actions=TextChoices(MOST, 3),
    words=WORDS,
    max_cycles=4,
    time_limit_is_loss=False,
    outcome=SCORE,
    capabilities=frozenset({SCORES}),
)
K = 4


def row(text, length):
    ids = [IDS[word] for word in text.split()]
    return ids + [0] * (length - len(ids))


def observed(*games):
    """What games show, each (task, actions)."""
    choices = np.zeros((len(games), 1, MOST, 3), np.int16)
    mask = np.zeros((len(games), 1, MOST), np.int8)
    for b, (_, actions) in enumerate(games):
        for j, action in enumerate(actions):
            choices[b, 0, j], mask[b, 0, j] = row(action, 3), 1
    tasks = np.array([row(task, 4) for task, _ in games], np.int16)
    return {
        "task": tasks,
        "observation": np.ones((len(games), 1, 3), np.int16),
        CHOICES: choices,
        "action_mask": mask,
    }


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(3)
    save_guide(tmp_path / "guide", Guide(HashedEncoder(buckets=512, width=8, hidden=8)), {})
    return str(tmp_path / "guide")


def make(folder, **options):
    torch.manual_seed(0)
    sizes = {"embedding": 8, "hidden": 8, "vocabulary": "words", "k": K}
    return make_policy("lge", SPEC, guide=folder, **{**sizes, **options})


def chosen(policy, observation, u=None, player=None):
    """[B, C] bool, the candidates of a first step."""
    count = len(observation["task"])
    player = player or Player(policy, SPEC, count, torch.Generator().manual_seed(0))
    record = None if u is None else {"guidance": np.asarray(u, np.float32)}
    batch = player.batch(shown_to(0, observation, SPEC, None), np.ones(count, np.bool_), record=record)
    found = policy.candidates(batch)[0].numpy()
    logits = policy(batch).logits[0]
    assert ((logits > torch.finfo(logits.dtype).min).numpy() <= found).all()
    return found


GAMES = ("boil water", ACTIONS), ("eat lead", ACTIONS[::-1]), ("boil water", ACTIONS[:3])


class TestCandidates:
    @pytest.mark.parametrize("keep_nav", [True, False])
    def test_are_the_best_of_the_guide_and_ways_to_go(self, folder, keep_nav):
        policy = make(folder, keep_nav=keep_nav)
        found = chosen(policy, observed(*GAMES), u=[0.9] * 3)
        guide = policy._guide.guide
        for b, (task, actions) in enumerate(GAMES):
            best = top_k(guide.score(task, actions), K)
            goes = [action.startswith(("go to ", "teleport to ")) for action in actions]
            wanted = best | (np.array(goes) & keep_nav) if len(actions) > K else np.ones(len(actions), np.bool_)
            assert found[b, : len(actions)].tolist() == wanted.tolist()
            assert not found[b, len(actions) :].any()
        assert policy.guided == 2 * 2, "of three games one has fewer choices than k; two passes"

    def test_are_all_that_is_valid_where_the_guide_is_not_heeded(self, folder):
        policy, observation = make(folder), observed(*GAMES)
        valid = observation["action_mask"][:, 0].astype(bool)
        mixed = chosen(policy, observation, u=[0.05, 0.2, 0.05])
        assert (mixed[[0, 2]] == valid[[0, 2]]).all()
        assert mixed[1].sum() < valid[1].sum(), "ε is .1"
        policy.epsilon.fill_(1.0)
        assert (chosen(policy, observation, u=[0.05, 0.99, 0.5]) == valid).all()
        policy.epsilon.fill_(0.0)
        assert (chosen(policy, observation, u=[1e-6] * 3).sum(1) < [24, 24, 4]).all()

    def test_evaluations_draw_the_same(self, folder):
        policy, observation = make(folder), observed(*GAMES[:1] * 64)
        policy.epsilon.fill_(0.5)
        first = chosen(policy, observation)
        torch.rand(5)
        assert (chosen(policy, observation) == first).all()
        guided = (first.sum(1) < len(ACTIONS)).mean()
        assert 0.3 < guided < 0.7


class TestLearning:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, (0.1, 0.1, 0.1, 0.1)),
            ({"guidance": "inc"}, (0.1, 0.55, 1.0, 1.0)),
            ({"guidance": "inc", "epsilon": 0.0}, (0.0, 0.5, 1.0, 1.0)),
            ({"guidance": "released"}, (0.1, 0.55, 1.0, 1.0)),
        ],
    )
    def test_schedules(self, folder, options, expected):
        config = LgeLearnerConfig(guidance_steps=1000, **options)
        assert [config.epsilon_at(steps) for steps in (0, 500, 1000, 2000)] == pytest.approx(expected)
        policy = make(folder)
        learner = config.make_learner(policy, SPEC, 2, 0)
        learner.explore(500)
        assert policy.epsilon.item() == pytest.approx(expected[1])
        assert bool(policy.together) == (options.get("guidance") == "released")
        assert learner.metrics(500)["epsilon"] == pytest.approx(expected[1])

    def test_what_is_learnt_is_drrns_from_all_valid_actions(self, folder):
        """Played with a Guide that leaves out nearly everything, learnt from as DRRN would."""
        sizes = {"embedding": 8, "hidden": 8, "vocabulary": "words"}
        torch.manual_seed(0)
        guided = make_policy("lge", MANY, guide=folder, k=1, keep_nav=False, **sizes)
        plain = make_policy("drrn", MANY, **sizes)
        plain.load_state_dict({name: guided.state_dict()[name] for name in plain.state_dict()})
        options = {"batch": 4, "learning_rate": 1e-2}
        learners = (
            LgeLearnerConfig(epsilon=0.0, **options).make_learner(guided, MANY, 4, 0),
            DrrnLearnerConfig(**options).make_learner(plain, MANY, 4, 0),
        )
        for learner in learners:
            learner.explore(0)
        trajectory = make_actor(guided, num_envs=4, most=40).collect().trajectories[0]
        assert guided.guided == trajectory.action.size, "the Guide was heeded in every step"
        told = [learner.update(trajectory, 24) for learner in learners]
        assert told[0]["td_loss"] == told[1]["td_loss"]
        weights = guided.state_dict()
        assert all(torch.equal(weights[name], tensor) for name, tensor in plain.state_dict().items())
