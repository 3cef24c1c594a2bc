"""Texts on their way from the games to the learners: noted as shown, kept once, and read again as they were."""

import copy

import numpy as np
import pytest
import torch

from magrounding.agents.policy import OTHERS, STATE, Batch, Reading
from magrounding.spec import CHOICES
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.rollout import RolloutWorker
from tests.training.test_rollout import Diary
from tests.training.text_games import OFFERED, TextGames, TextPolicy
from tests.training.toy_games import collect, players_of

T, B, N = 9, 5, 2
OWN = ("message", CHOICES)


@pytest.fixture
def policies():
    torch.manual_seed(0)
    return [TextPolicy() for _ in range(N)]


def played(policies, skip=1, **options):
    """A rollout after others, and the pages of a diary about it."""
    vec = Diary(TextGames(B, N, **options))
    worker = RolloutWorker(vec, players_of(vec, policies), T)
    worker.start(seed=3)
    for _ in range(skip):
        worker.collect()
    return copy.deepcopy(worker.collect()), vec.pages[skip * T :]


def test_a_trajectory_has_every_text_that_was_shown(policies):
    rollout, pages = played(policies)
    for i, trajectory in enumerate(rollout.trajectories):
        assert trajectory.texts.keys() == {"goal", *OWN}
        assert trajectory.texts[CHOICES].index.shape == (T + 1, B, OFFERED)
        for name in OWN:
            text = trajectory.texts[name]
            for t in range(T + 1):
                assert (text.ids[name][text.index[t]] == pages[t][0][name][:, i]).all()
            assert len(np.unique(text.ids[name], axis=0)) == len(text.ids[name])
            used = np.concatenate([text.index.ravel(), trajectory.truncations.texts[name].ravel()])
            assert (np.unique(used) == np.arange(len(text.ids[name]))).all()  # nothing else is kept
        text = trajectory.texts["goal"]
        for t in range(T + 1):
            assert (text.ids["goal"][text.index[t]] == pages[t][0]["goal"]).all()
    changes = [
        (trajectory.texts["message"].index[1:] != trajectory.texts["message"].index[:-1])
        for trajectory in rollout.trajectories
    ]
    assert np.mean(changes) > 0.5


def learners_of(policy):
    return PPOLearner(policy, PPOConfig()), ImpalaLearner(policy, ImpalaConfig())


@pytest.mark.parametrize("is_loss", [True, False])
def test_what_is_replayed_is_what_was_done(policies, is_loss):
    """Texts, memory, last actions: with the same weights logits and values are those of the rollout."""
    rollout, _ = played(policies, skip=2, time_limit_is_loss=is_loss)
    for policy, trajectory in zip(policies, rollout.trajectories, strict=True):
        assert trajectory.memory.any()
        for learner in learners_of(policy):
            for games in (np.arange(B), np.array([3, 1])):
                with torch.no_grad():
                    now = learner.reevaluate(trajectory.games(games))
                torch.testing.assert_close(now.logits, torch.from_numpy(trajectory.logits[:, games]), rtol=0, atol=1e-6)
                torch.testing.assert_close(now.value, torch.from_numpy(trajectory.value[:, games]), rtol=0, atol=1e-6)
        messages = trajectory.texts["message"].ids["message"]
        messages[:] = np.where(messages, 1 + messages % 3, 0)  # other words: the replay depends on them
        with torch.no_grad():
            other = learner.reevaluate(trajectory.games(np.arange(B)))
        assert not torch.allclose(other.value, torch.from_numpy(trajectory.value), rtol=0, atol=1e-6)


@torch.no_grad()
def value_of(policy, trajectory, f, memory):
    """Of one true last observation: its texts read by themselves."""
    t, b = (int(part[f]) for part in trajectory.truncations.where)
    texts = {}
    for name, text in trajectory.texts.items():
        shown = text.ids[name][np.atleast_1d(trajectory.truncations.texts[name][f])]
        index = torch.arange(len(shown)).view(1, 1, -1) if name == CHOICES else torch.zeros(1, 1, dtype=torch.int64)
        texts[name] = Reading(policy.encode(name, {name: torch.from_numpy(shown)}), index)
    final = {name: torch.from_numpy(array[f])[None, None] for name, array in trajectory.truncations.observation.items()}
    action = torch.tensor([[int(trajectory.action[t, b])]])
    return policy(Batch(final, texts, memory[t, b][None], torch.zeros(1, 1, dtype=torch.bool), action)).value.item()


def test_a_game_cut_off_is_worth_what_its_last_texts_say(policies):
    rollout, pages = played(policies, end=0.05)
    for i, (policy, trajectory) in enumerate(zip(policies, rollout.trajectories, strict=True)):
        with torch.no_grad():
            now = PPOLearner(policy, PPOConfig()).reevaluate(trajectory.games(np.arange(B)))
        assert len(trajectory.truncations) > 4
        memory = memories_of(policy, trajectory, [page[0] for page in pages], i)
        for f, (t, b) in enumerate(zip(*trajectory.truncations.where, strict=True)):
            assert now.next_value[t, b].item() == pytest.approx(value_of(policy, trajectory, f, memory), abs=1e-5)
        within = trajectory.nonterminal[:-1]
        torch.testing.assert_close(now.next_value[:-1][within], now.value[1:][within])


@torch.no_grad()
def memories_of(policy, trajectory, observations, i):
    """[T, B, width] after each step, from what the games showed, a text at a time."""
    memory, after = trajectory.memory, []
    for t in range(T):
        texts = {}
        for name in ("goal", *OWN):
            shown = observations[t][name] if name == "goal" else observations[t][name][:, i]
            flat = torch.from_numpy(shown.reshape(-1, shown.shape[-1]))
            texts[name] = Reading(policy.encode(name, {name: flat}), torch.arange(len(flat)).view(1, *shown.shape[:-1]))
        seen = {name: torch.from_numpy(array[t])[None] for name, array in trajectory.observation.items()}
        restarts, last = (torch.from_numpy(array[t])[None] for array in (trajectory.restarts, trajectory.last_action))
        memory = policy(Batch(seen, texts, memory, restarts, last)).memory[0]
        after.append(memory)
    return torch.stack(after)


@pytest.mark.parametrize("needs", [(), (OTHERS,), (STATE,), (OTHERS, STATE)])
@pytest.mark.parametrize("who", ["policy", "algorithm"])
def test_what_is_needed_is_recorded_and_nothing_else(needs, who):
    torch.manual_seed(0)
    wanted = frozenset(needs)
    vec = Diary(TextGames(B, 3))
    told = [TextPolicy(needs=wanted if who == "policy" else frozenset()) for _ in range(3)]
    rollout = collect(vec, told, unroll=T, needs=wanted if who == "algorithm" else frozenset())
    for i, trajectory in enumerate(rollout.trajectories):
        assert trajectory.extras.keys() == wanted
        if OTHERS in wanted:
            others = [rollout.trajectories[j].action for j in range(3) if j != i]
            assert (trajectory.extras[OTHERS][:-1] == np.stack(others, -1)).all()
            assert (trajectory.extras[OTHERS][-1] == -1).all()
        if STATE in wanted:
            lengths = np.stack([page[2]["length"] * ~page[2]["done"] for page in vec.pages[:T]])
            assert (trajectory.extras[STATE][:-1, :, 0] == lengths).all()
            assert not trajectory.extras[STATE][-1].any()
