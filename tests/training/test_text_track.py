"""Texts on their way from the games to the learners: noted as shown, kept once, and read again as they were."""

import copy

import numpy as np
import pytest
import torch

from magrounding.agents.policy import LABELS, OTHERS, STATE, Batch, Reading
from magrounding.spec import CHOICES
from magrounding.texts import content_keys
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from magrounding.training.text_track import TextTrack
from tests.training.test_rollout import Diary
from tests.training.text_games import LENGTH, OFFERED, TextGames, TextPolicy, spec_of
from tests.training.toy_games import ToyExpert, ToyGames, ToyPolicy, collect, players_of

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


def test_the_order_of_texts_is_that_of_their_keys():
    """Games in another order give the same texts in the same order."""
    spec, rng = spec_of(), np.random.default_rng(0)
    steps = [rng.integers(1, 4, (B, LENGTH)).astype(np.int16) for _ in range(T)]
    order, columns = rng.permutation(B), []
    for games in (np.arange(B), order):
        track = TextTrack(("message",), spec, T, B)
        for t, texts in enumerate(steps):
            track.note(t, {"message": texts[games]}, None)
        columns.append(track.column())
    one, other = columns
    assert (one.ids["message"] == other.ids["message"]).all()
    assert (one.index[:, order] == other.index).all()
    keys = content_keys(one.ids)
    assert (np.diff(keys) > 0).all()  # distinct, and in their order


def test_a_track_begins_anew():
    spec, track = spec_of(), TextTrack(("message",), spec_of(), 2, 1)
    assert spec["message"].shape == (LENGTH,)
    for word in (1, 2):
        track.begin()
        for t in range(2):
            track.note(t, {"message": np.full((1, LENGTH), word, np.int16)}, None)
        column = track.column()
        assert column.ids["message"].tolist() == [[word] * LENGTH]
        assert column.index.tolist() == [[0], [0]]
        assert column.final.shape == (0,)


def test_a_column_has_every_text_that_was_shown(policies):
    rollout, pages = played(policies)
    for i, column in enumerate(rollout.columns):
        assert column.texts.keys() == {"goal", *OWN}
        assert column.texts[CHOICES].index.shape == (T + 1, B, OFFERED)
        for name in OWN:
            text = column.texts[name]
            for t in range(T + 1):
                assert (text.ids[name][text.index[t]] == pages[t][0][name][:, i]).all()
            assert len(np.unique(text.ids[name], axis=0)) == len(text.ids[name])
            used = np.concatenate([text.index.ravel(), text.final.ravel()])
            assert (np.unique(used) == np.arange(len(text.ids[name]))).all()  # nothing else is kept
        text = column.texts["goal"]
        for t in range(T + 1):
            assert (text.ids["goal"][text.index[t]] == pages[t][0]["goal"]).all()
    changes = [(column.texts["message"].index[1:] != column.texts["message"].index[:-1]) for column in rollout.columns]
    assert np.mean(changes) > 0.5


def test_texts_of_true_last_observations_are_kept(policies):
    rollout, pages = played(policies, end=0.05)
    found = 0
    for i, column in enumerate(rollout.columns):
        assert column.texts["message"].final.shape == column.cut[0].shape
        assert column.texts[CHOICES].final.shape == (len(column.cut[0]), OFFERED)
        for f, (t, b) in enumerate(zip(*column.cut, strict=True)):
            _, _, info, final = pages[t + 1]
            row = info["final_rows"].tolist().index(b)
            for name in OWN:
                text = column.texts[name]
                assert (text.ids[name][text.final[f]] == final[name][row, i]).all()
            goal = column.texts["goal"]
            assert (goal.ids["goal"][goal.final[f]] == final["goal"][row]).all()
            found += int((final["message"][row, i] != pages[t + 1][0]["message"][b, i]).any())
    assert found > 10  # the next game's texts are others


def test_nothing_is_last_where_a_time_out_is_a_loss(policies):
    rollout, _ = played(policies, time_limit_is_loss=True)
    for column in rollout.columns:
        assert len(column.cut[0]) == 0
        assert all(text.final.shape[0] == 0 for text in column.texts.values())
    one, other = (column.texts["goal"] for column in rollout.columns)
    assert one.ids["goal"] is not None
    assert (one.index == other.index).all()


def learners_of(policy):
    return PPOLearner(policy, PPOConfig()), ImpalaLearner(policy, ImpalaConfig())


@pytest.mark.parametrize("is_loss", [True, False])
def test_what_is_replayed_is_what_was_done(policies, is_loss):
    """Texts, memory, last actions: with the same weights logits and values are those of the rollout."""
    rollout, _ = played(policies, skip=2, time_limit_is_loss=is_loss)
    for policy, column in zip(policies, rollout.columns, strict=True):
        assert column.memory.any()
        for learner in learners_of(policy):
            for games in (np.arange(B), np.array([3, 1])):
                with torch.no_grad():
                    now = learner.replay(column, games)
                torch.testing.assert_close(now.logits, torch.from_numpy(column.logits[:, games]), rtol=0, atol=1e-6)
                torch.testing.assert_close(now.value, torch.from_numpy(column.value[:, games]), rtol=0, atol=1e-6)
        messages = column.texts["message"].ids["message"]
        messages[:] = np.where(messages, 1 + messages % 3, 0)  # other words: the replay depends on them
        with torch.no_grad():
            other = learner.replay(column, np.arange(B))
        assert not torch.allclose(other.value, torch.from_numpy(column.value), rtol=0, atol=1e-6)


def test_no_text_is_encoded_that_the_games_do_not_show(policies):
    rollout, _ = played(policies)
    policy, column, games = policies[0], rollout.columns[0], np.array([2, 0])
    policy.encoded.clear()
    PPOLearner(policy, PPOConfig()).replay(column, games)
    for name in ("goal", *OWN):
        ((_, ids),) = [each for each in policy.encoded if each[0] == name]
        text = column.texts[name]
        mine = np.isin(column.cut[1], games)
        used = np.unique(np.concatenate([text.index[:, games].ravel(), text.final[mine].ravel()]))
        assert (ids == text.ids[name][used]).all()
    assert len(used) < len(text.ids[CHOICES])


@torch.no_grad()
def value_of(policy, column, f, memory):
    """Of one true last observation: its texts read by themselves."""
    t, b = (int(part[f]) for part in column.cut)
    texts = {}
    for name, text in column.texts.items():
        shown = text.ids[name][np.atleast_1d(text.final[f])]
        index = torch.arange(len(shown)).view(1, 1, -1) if name == CHOICES else torch.zeros(1, 1, dtype=torch.int64)
        texts[name] = Reading(policy.encode(name, {name: torch.from_numpy(shown)}), index)
    final = {name: torch.from_numpy(array[f])[None, None] for name, array in column.final.items()}
    action = torch.tensor([[int(column.action[t, b])]])
    return policy(Batch(final, texts, memory[t, b][None], torch.zeros(1, 1, dtype=torch.bool), action)).value.item()


def test_a_game_cut_off_is_worth_what_its_last_texts_say(policies):
    rollout, pages = played(policies, end=0.05)
    for i, (policy, column) in enumerate(zip(policies, rollout.columns, strict=True)):
        with torch.no_grad():
            now = PPOLearner(policy, PPOConfig()).replay(column, np.arange(B))
        assert len(column.cut[0]) > 4
        memory = memories_of(policy, column, [page[0] for page in pages], i)
        for f, (t, b) in enumerate(zip(*column.cut, strict=True)):
            assert now.next_value[t, b].item() == pytest.approx(value_of(policy, column, f, memory), abs=1e-5)
        within = column.continues[:-1]
        torch.testing.assert_close(now.next_value[:-1][within], now.value[1:][within])


@torch.no_grad()
def memories_of(policy, column, observations, i):
    """[T, B, width] after each step, from what the games showed, a text at a time."""
    memory, after = column.memory, []
    for t in range(T):
        texts = {}
        for name in ("goal", *OWN):
            shown = observations[t][name] if name == "goal" else observations[t][name][:, i]
            flat = torch.from_numpy(shown.reshape(-1, shown.shape[-1]))
            texts[name] = Reading(policy.encode(name, {name: flat}), torch.arange(len(flat)).view(1, *shown.shape[:-1]))
        seen = {name: torch.from_numpy(array[t])[None] for name, array in column.observation.items()}
        restarts, last = (torch.from_numpy(array[t])[None] for array in (column.restarts, column.last_action))
        memory = policy(Batch(seen, texts, memory, restarts, last)).memory[0]
        after.append(memory)
    return torch.stack(after)


def test_a_column_is_recalled_as_it_is_replayed(policies):
    rollout, _ = played(policies, time_limit_is_loss=True)
    for policy, column in zip(policies, rollout.columns, strict=True):
        policy.encoded.clear()
        learner = PPOLearner(policy, PPOConfig())
        recalled = learner.recall(column)
        shown = {name: len(ids) for name, ids in policy.encoded}
        assert shown["message"] <= B  # only the boundary step is read
        with torch.no_grad():
            replayed = learner.replay(column, np.arange(B))
        for one, other in zip(recalled[:3], replayed[:3], strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


@pytest.mark.parametrize("is_loss", [True, False])
def test_a_joined_column_reads_the_same(policies, is_loss):
    rollout, _ = played([policies[0]] * N, time_limit_is_loss=is_loss)
    [joined] = rollout.joined()
    learner = PPOLearner(policies[0], PPOConfig())
    with torch.no_grad():
        whole = learner.replay(joined, np.arange(N * B))
    for i, column in enumerate(rollout.columns):
        mine = slice(i * B, (i + 1) * B)
        for name in ("goal", *OWN):
            ours, own = joined.texts[name], column.texts[name]
            assert (ours.ids[name][ours.index[:, mine]] == own.ids[name][own.index]).all()
        with torch.no_grad():
            alone = learner.replay(column, np.arange(B))
        for one, other in zip(whole[:3], alone[:3], strict=True):
            torch.testing.assert_close(one[:, mine], other, rtol=0, atol=1e-6)
    for name, text in joined.texts.items():
        parts = [column.texts[name] for column in rollout.columns]
        last = np.concatenate([part.ids[name][part.final] for part in parts])
        assert (text.ids[name][text.final] == last).all()
        assert len(text.final) == len(joined.cut[0])


@pytest.mark.parametrize("needs", [(), (OTHERS,), (STATE,), (OTHERS, STATE)])
@pytest.mark.parametrize("who", ["policy", "algorithm"])
def test_what_is_needed_is_recorded_and_nothing_else(needs, who):
    torch.manual_seed(0)
    wanted = frozenset(needs)
    vec = Diary(TextGames(B, 3))
    told = [TextPolicy(needs=wanted if who == "policy" else frozenset()) for _ in range(3)]
    rollout = collect(vec, told, unroll=T, needs=wanted if who == "algorithm" else frozenset())
    for i, column in enumerate(rollout.columns):
        assert column.extras.keys() == wanted
        if OTHERS in wanted:
            others = [rollout.columns[j].action for j in range(3) if j != i]
            assert (column.extras[OTHERS][:-1] == np.stack(others, -1)).all()
            assert (column.extras[OTHERS][-1] == -1).all()
        if STATE in wanted:
            lengths = np.stack([page[2]["length"] * ~page[2]["done"] for page in vec.pages[:T]])
            assert (column.extras[STATE][:-1, :, 0] == lengths).all()
            assert not column.extras[STATE][-1].any()


def test_labels_are_there_with_a_teacher_only():
    torch.manual_seed(0)
    vec = ToyGames()
    alone = collect(vec, [ToyPolicy(), ToyPolicy()])
    taught = collect(vec, [ToyPolicy(), ToyPolicy()], teacher=Teacher(ToyExpert(vec), noise=0.0, seed=0))
    assert all(column.extras == {} for column in alone.columns)
    assert all(column.extras.keys() == {LABELS} for column in taught.columns)


def test_what_was_done_before_is_recorded(policies):
    rollout, _ = played(policies, end=0.2)
    for column in rollout.columns:
        restarts = column.restarts
        assert (column.last_action[restarts] == -1).all()
        goes_on = ~restarts[1:]
        assert (column.last_action[1:][goes_on] == column.action[goes_on]).all()
        assert restarts[1:].any()


@pytest.mark.parametrize("learner", [0, 1], ids=["ppo", "impala"])
def test_it_learns_from_such_columns(policies, learner):
    rollout, _ = played(policies)
    policy = policies[0]
    before = copy.deepcopy(policy.state_dict())
    told = learners_of(policy)[learner].update(rollout.columns[0], 50_000)
    assert np.isfinite(list(told.values())).all()
    changed = {name for name, tensor in policy.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == set(before)
