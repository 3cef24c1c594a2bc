"""The learner of DRRN: its loss by hand, its replay, a game that only word order decides, and a run that goes on."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.errors import ConfigurationError
from magrounding.experiment.checkpoint import pack_arrays, pack_learners, unpack_arrays, unpack_learners
from magrounding.extensions.lge.choice_replay import ChoiceReplay
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig
from magrounding.spec import CHOICES
from magrounding.teams.evaluate import play
from magrounding.teams.scripted import RandomTeam
from magrounding.teams.team import Team
from magrounding.training.rollout import RolloutWorker
from magrounding.training.trajectory import Texts, Truncations
from tests.training.order_game import OrderGame
from tests.training.text_games import OFFERED, TextGames
from tests.training.toy_games import players_of

SMALL = {"vocabulary": "words", "embedding": 16, "hidden": 24}
FEW = DrrnLearnerConfig(batch=8, replay_transitions=400, learning_rate=3e-3)
AGENTS = ["drrn", "drrn_bow"]


def make(vec, config=FEW, agent="drrn", seed=0, start=0):
    """A learner of the first agent, and who collects games for all."""
    policy = build_policy(agent, vec.spec, SMALL, seed)
    learner = config.make_learner(policy, vec.spec, vec.num_envs, seed)
    worker = RolloutWorker(vec, players_of(vec, [policy] * vec.num_agents), config.unroll)
    worker.start(seed=start)
    return learner, worker


def iterate(learner, worker, steps=0):
    learner.explore(steps)
    return learner.update(worker.collect().trajectories[0], steps)


@pytest.mark.parametrize("agent", AGENTS)
def test_word_order_is_learnt_by_who_sees_it(agent):
    config = replace(FEW, batch=32, unroll=2, updates=2.0, final_temperature=0.05, exploration=1200)
    vec = mg.vectorize(OrderGame, 8)
    learner, worker = make(vec, config, agent)
    for update in range(120):
        iterate(learner, worker, 16 * update)
    games = mg.vectorize(OrderGame, 60)
    trained = play(Team([learner.policy], vec.spec), games, 60, seed=9).returns.mean() / 3
    random = play(RandomTeam(1, 8, obey_mask=True), games, 60, seed=9).returns.mean() / 3
    assert random < 0.3
    if agent == "drrn":
        assert trained > 0.95
    else:
        assert random < trained < 0.75, "of two orders of the same words a bag knows no difference"


def slow_value(policy, task_and_texts, choice):
    """Q of one state and one choice, text by text."""
    texts = {**task_and_texts, CHOICES: {CHOICES: choice}}
    rows = {name: {f: torch.from_numpy(ids)[None] for f, ids in fields.items()} for name, fields in texts.items()}
    states = [policy.read(name, each) for name, each in rows.items()]
    return policy.score(torch.relu(policy.hidden(torch.cat(states, 1))))[0, 0]


class Watched:
    """What a worker's games showed and did, kept aside: [step] → a dict for each game."""

    def __init__(self, worker):
        self.steps, self._step, self._worker = [], worker.vec.step, worker
        worker.vec.step = self.step

    def step(self, actions):
        before = {k: v.copy() for k, v in self._worker._observation.items()}
        after, rewards, terminated, truncated, info = result = self._step(actions)
        final = {k: {b: v[f].copy() for f, b in enumerate(info.final_rows)} for k, v in info.final_observation.items()}
        for b in range(self._worker.vec.num_envs):
            last = {k: final[k].get(b, after[k][b]).copy() for k in after}
            first = {k: v[b] for k, v in before.items()}
            goes_on = not terminated[b, 0] and not (truncated[b, 0] and self._worker.vec.spec.time_limit_is_loss)
            self.steps.append((first, int(actions[b, 0]), float(rewards[b, 0]), bool(goes_on), last))
        return result


@pytest.mark.parametrize(("is_loss", "delta", "target"), [(True, 0.05, 0), (False, 1.0, 0), (False, 0.05, 3)])
def test_the_loss_is_that_of_a_slow_loop(is_loss, delta, target):
    """Ends, time-outs (with the true last observation, or a loss) and priorities; all legal choices count."""
    vec = TextGames(4, 1, max_cycles=4, time_limit_is_loss=is_loss)
    config = replace(FEW, updates=0.0, delta=delta, target_every=target, gamma=0.8, reward_scale=0.5)
    learner, worker = make(vec, config)
    watched = Watched(worker)
    # Play is confined, what a state is worth is not.
    learner.policy.candidates = lambda batch: torch.arange(OFFERED) == 0
    for _ in range(12):
        iterate(learner, worker)
    with torch.no_grad():
        for parameter in learner.target.parameters() if target else ():
            parameter.mul_(0.7)
    drawn = learner.replay_buffer.sample(len(learner.replay_buffer), np.random.default_rng(0))
    assert len(drawn.reward) == 48 == len(watched.steps)
    loss, metrics = learner.loss(drawn)
    errors, values = [], []

    def state(seen):
        return {"observation": {"goal": seen["goal"], "message": seen["message"][0]}}

    with torch.no_grad():
        for seen, action, reward, goes_on, last in watched.steps:
            q = slow_value(learner.policy, state(seen), seen[CHOICES][0, action])
            best = torch.zeros(())
            if goes_on:
                legal = np.flatnonzero(last["action_mask"][0])
                best = max(slow_value(learner.target, state(last), last[CHOICES][0, j]) for j in legal)
            error = (q - (0.5 * reward + 0.8 * best)).abs()
            errors.append(torch.where(error < delta, error**2 / 2, delta * (error - delta / 2)))
            values.append(q)
    followed = sum(goes_on for *_, goes_on, _ in watched.steps)
    assert len(drawn.follows) == followed < 48
    torch.testing.assert_close(loss, torch.stack(errors).mean(), atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(metrics["q"], torch.stack(values).mean(), atol=1e-6, rtol=1e-5)


def trajectory_of(rewards, ended, seed=0):
    """A trajectory [T, 1] of made-up texts: message t says t, choices are t and t + 1, and the second one is taken."""
    T = len(rewards)
    times = np.arange(T + 1) + 10 * seed
    ids = np.arange(500)[:, None].astype(np.int16)
    messages = times[:, None]
    choices = np.stack([times, times + 1, 0 * times], -1)[:, None]
    return SimpleNamespace(
        texts={
            "message": Texts({"message": ids}, messages),
            CHOICES: Texts({CHOICES: ids}, choices),
        },
        truncations=Truncations(
            (np.zeros(0, np.int64), np.zeros(0, np.int64)),
            {"action_mask": np.zeros((0, 3), np.int8)},
            {"message": messages[:0, 0], CHOICES: choices[:0, 0]},
        ),
        observation={"action_mask": np.tile(np.array([1, 1, 0], np.int8), (T + 1, 1, 1))},
        action=np.ones((T, 1), np.int64),
        reward=np.array(rewards, np.float32)[:, None],
        alive=np.ones((T, 1), np.bool_),
        discount=1 - np.array(ended, np.float32)[:, None],
    )


def replay_of(capacity=40, fraction=0.5, as_code=False):
    empty = np.zeros((0, 1), np.int16)
    return ChoiceReplay(capacity, fraction, as_code, {"message": {"message": empty}, CHOICES: {CHOICES: empty}})


def draw(replay, count, seed=0):
    drawn = replay.sample(count, np.random.default_rng(seed))
    return drawn.texts["message"]["message"][drawn.state["message"], 0], drawn


class TestReplay:
    def test_a_transition_is_what_happened(self):
        replay = replay_of()
        replay.add(trajectory_of([0, 1, 0, 5], [0, 0, 0, 1]))
        message, drawn = draw(replay, 4)
        order = np.argsort(message)
        assert message[order].tolist() == [0, 1, 2, 3]
        assert drawn.reward[order].tolist() == [0, 1, 0, 5]
        assert drawn.texts[CHOICES][CHOICES][drawn.action[order], 0].tolist() == [1, 2, 3, 4]
        assert sorted(message[drawn.follows]) == [0, 1, 2]
        following = drawn.texts["message"]["message"][drawn.following["message"], 0]
        assert (following == message[drawn.follows] + 1).all()
        offered = drawn.texts[CHOICES][CHOICES][drawn.offered, 0]
        assert offered.tolist() == [x for m in following for x in (m, m + 1)]
        assert drawn.owner.tolist() == [0, 0, 1, 1, 2, 2]
        assert drawn.shown == 4 + 3 + 4 + 6

    @pytest.mark.parametrize(("positive", "expected"), [(0, 0), (3, 3), (4, 4), (12, 4)])
    def test_each_half_gives_half_or_what_it_has(self, positive, expected):
        replay = replay_of()
        replay.add(trajectory_of([1] * positive + [0] * 12, [0] * (positive + 12)))
        assert (replay.positive, len(replay)) == (positive, positive + 12)
        counts = {int((draw(replay, 8, seed)[1].reward > 0).sum()) for seed in range(20)}
        assert counts == {expected}

    def test_rings_forget_the_oldest_and_texts_that_nothing_refers_to(self):
        replay = replay_of(8)
        for seed in range(30):
            replay.add(trajectory_of([0, 1, 0, 0], [0, 0, 0, 0], seed))
        assert (replay.positive, len(replay)) == (4, 8)
        message, drawn = draw(replay, 8)
        assert set(message) == {261, 271, 281, 291, 283, 290, 292, 293}, "four of either half"
        assert (drawn.texts["message"]["message"][drawn.following["message"], 0] == message[drawn.follows] + 1).all()
        assert (drawn.texts[CHOICES][CHOICES][drawn.action, 0] == message + 1).all()
        replay._sweep()
        assert len(replay._lists) == 8
        assert len(replay._pools["message"]) == len({*message, *(message + 1)})
        assert len(replay._pools[CHOICES]) == len({*(message + 1), *(message + 2)})
        again, kept = draw(replay, 8)
        assert (again == message).all()
        assert np.array_equal(kept.texts[CHOICES][CHOICES][kept.offered], drawn.texts[CHOICES][CHOICES][drawn.offered])


@pytest.mark.parametrize(("agent", "target"), [("drrn", 5), ("drrn_bow", 0)])
def test_what_is_put_back_learns_on_to_the_bit(agent, target):
    """Weights, optimiser and replay of a learner in the middle, and the same trajectories: the same weights."""
    config = replace(FEW, target_every=target, replay_transitions=60, final_temperature=0.5, exploration=300)
    vec = mg.vectorize(OrderGame, 6)
    whole, worker = make(vec, config, agent)
    for update in range(20):
        iterate(whole, worker, 6 * update)
    tensors = {**pack_learners([whole]), **pack_arrays(whole.snapshot(), "beside/")}
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    again, _ = make(mg.vectorize(OrderGame, 6), config, agent, seed=0)
    with torch.no_grad():
        for parameter in again.policy.parameters():
            parameter.add_(1.0)
    unpack_learners(tensors, [again], "there")
    again.restore(unpack_arrays(tensors, "beside/"))
    for update in range(20, 40):
        whole.explore(6 * update)
        again.explore(6 * update)
        trajectory = worker.collect().trajectories[0]
        ours, theirs = whole.update(trajectory, 6 * update), again.update(trajectory, 6 * update)
        assert all(ours[name] == theirs[name] for name in ours if not name.startswith("texts")), "who acts reads more"
    ours, theirs = whole.module.state_dict(), again.module.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_target_network_reads_each_text_once_and_mistakes_none_for_another():
    """The replay drops texts and gives their places to others: what was read of them is not taken for these."""
    config = replace(FEW, target_every=1000, replay_transitions=20)
    learner, worker = make(TextGames(4, 1), config)
    for step in range(30):
        iterate(learner, worker, step)
    assert learner.replay_buffer.sweeps > 2
    drawn = learner.replay_buffer.sample(12, np.random.default_rng(0))
    fresh, _ = make(TextGames(4, 1), config)
    fresh.module.load_state_dict(learner.module.state_dict())
    for _ in range(2):
        torch.testing.assert_close(learner.loss(drawn)[0], fresh.loss(drawn)[0], atol=0, rtol=1e-5)
        read, fresh.target.encoded = fresh.target.encoded, 0
    assert read == 0, "the second time nothing is left to read"


@pytest.mark.parametrize(
    "options",
    [
        {"priority": "often"},
        {"temperature": 0.0},
        {"replay_transitions": 7},  # fewer than a batch
        {"priority": "off_as_code", "priority_fraction": 1.0},
        {"priority": "off_as_code", "priority_fraction": 0.6, "batch": 1},
    ],
)
def test_options_by_which_nothing_is_learnt_are_refused(options):
    with pytest.raises(ConfigurationError):
        replace(FEW, **options)
