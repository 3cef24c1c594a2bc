"""choiceread: choices matched with the task and with what was said before, in a tiny world of texts."""

from dataclasses import replace

import torch

import magrounding as mg
from magrounding.agents.building import make_policy
from magrounding.agents.policy import Batch
from magrounding.play.actor import make_expert
from magrounding.play.player import Player
from magrounding.spec import CHOICES, EPISODE, Text
from magrounding.training.imitation import ImitationConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from tests.many_choices import SPEC as MANY
from tests.tiny_rooms import SPEC, TinyRooms

SMALL = {"embedding": 8, "states": 16, "role": 6, "hidden": 12}
STEPS, GAMES = 6, 4
IMITATION = ImitationConfig(
    unroll=8, epochs=2, minibatches=2, learning_rate=0.01, warm_up=0, anneal_steps=8_000, entropy=0.0,
    value_coefficient=0.01, teacher_steps=4_000,
)  # fmt: skip


def make(agent="choiceread", **options):
    torch.manual_seed(0)
    return make_policy(agent, SPEC, **options)


def worker_for(policy, games=GAMES, steps=STEPS, config=None):
    vec = mg.vectorize(TinyRooms, games)
    player = Player(policy, vec.spec, games, torch.Generator().manual_seed(1))
    teacher = None if config is None else Teacher(make_expert(vec), config.teacher_noise, 0)
    worker = RolloutWorker(vec, [player], steps, needs=frozenset() if config is None else config.needs, teacher=teacher)
    worker.start(seed=0)
    return worker


def unrolled(policy):
    """T steps of B games, and what was made of them step by step."""
    trajectory = worker_for(policy).collect().trajectories[0]
    learner = IMITATION.make_learner(policy, SPEC, GAMES, 0)
    return trajectory, learner.policy.encode_batch(trajectory.games().inputs)


def cut(batch, steps):
    """Some steps of a batch, without what went before."""
    texts = {name: replace(text, index=text.index[steps]) for name, text in batch.texts.items()}
    seen = {name: array[steps] for name, array in batch.observation.items()}
    return Batch(seen, texts, batch.memory, batch.restarts[steps], batch.last_action[steps])


@torch.no_grad()
def test_texts_without_a_word_are_read():
    policy = make("choiceread", **SMALL)
    nothing = {name: torch.zeros(2, *SPEC[name].shape, dtype=torch.int16) for name in ("task", "said")}
    assert not policy.encode("task", nothing)["roles"].any()
    assert not policy.encode("now", nothing)["mask"].any()


@torch.no_grad()
def test_where_nothing_is_offered_there_is_a_value_all_the_same():
    """Games that offer nothing may be all that is on show; beside others that do they are worth the same."""
    policy = make("choiceread", **SMALL)
    _, batch = unrolled(policy)
    first = cut(batch, slice(0, 1))
    over, one_over = torch.zeros_like(first.observation["action_mask"]), first.observation["action_mask"].clone()
    one_over[:, 0] = 0
    every, one = (
        policy(first._replace(observation={**first.observation, "action_mask": mask})) for mask in (over, one_over)
    )
    torch.testing.assert_close(every.value[0, 0], one.value[0, 0])
    assert (every.logits == torch.finfo(torch.float32).min).all()


def test_a_history_is_not_read_and_every_other_text_is():
    more = (Text("history", (3, 4), 0, 9), Text("rules", (2, 5), 0, 9, shared=True, lifetime=EPISODE))
    policy = make_policy("choiceread", replace(SPEC, fields=(*SPEC.fields, *more)), **SMALL)
    assert policy.reads == {
        "task": ("task", "rules"),
        "now": ("task", "rules", "said"),
        CHOICES: (CHOICES,),
    }
    assert make_policy("choiceread", MANY, **SMALL).reads["now"] == ("task", "observation")
