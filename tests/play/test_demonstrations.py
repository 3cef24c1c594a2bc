"""Demonstrations: what is recorded is what happened, a file is whole or refused, and learners meet every step of it."""

import io
import json
import pickle
import tracemalloc
import zipfile
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from rich.console import Console

import magrounding as mg
from magrounding.agents.building import build_policy
from magrounding.agents.policy import LABELS
from magrounding.agents.weights import load_weights
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment import baselines
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.presets import Promotion
from magrounding.experiment.progress import Display
from magrounding.experiment.settings import read_settings
from magrounding.experiment.stage import StageSession
from magrounding.play.demonstrations import Demonstrations, digests, find_demonstrations
from magrounding.play.evaluate import REPORT_SEED, evaluate, play
from magrounding.play.player import Player
from magrounding.play.recording import RECORDING_SEED, StopRecording, record
from magrounding.play.scripted import RandomTeam
from magrounding.play.team import Team
from magrounding.storage import read_json
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.imitation import ImitationConfig, ImitationLearner
from tests.endi.games import network
from tests.experiment.tiny_runs import IMITATION, phases_of, tiny_settings
from tests.training.toy_games import ToyGames, ToyPolicy

ARRAYS = ("game", "actions", "labels", "alive", "rewards", "won")


def make_vec(rows, stage="s3", **options):
    return mg.make_vec("ma_rtfm", rows, stage=stage, **{"agents": 2, "max_cycles": 8, **options})


def by_oracle(games=9, rows=4, seed=7, **options):
    vec = make_vec(rows, **options)
    return record(vec, Oracle(vec), games, seed, "oracle")


@pytest.fixture(scope="module")
def shown():
    return by_oracle()


def source_of(demonstrations, num_envs, unroll, policies=None, **options):
    policies = policies or [ToyPolicy()] * demonstrations.header.agents
    players = [Player(policy, ToyGames().spec, num_envs) for policy in policies]
    return DemonstrationSource(demonstrations, players, num_envs, unroll, **options)


def assert_equal(a, b):
    assert a.header == b.header
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for ours, theirs in ((a.observation, b.observation), (a.texts, b.texts)):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name])


def test_a_file_gives_back_what_was_saved(shown, tmp_path):
    path = tmp_path / "new" / "demos.npz"
    shown.save(path)
    loaded = Demonstrations.load(path)
    loaded.check(path, make_vec(1))
    assert_equal(loaded, replace(shown, header=replace(shown.header, action_names=list(shown.header.action_names))))
    assert [p.name for p in path.parent.iterdir()] == ["demos.npz"]
    header = shown.header
    assert (header.env, header.stage, header.agents, header.games, header.seed) == ("ma_rtfm", "s3", 2, 9, 7)
    assert header.options == {"stage": "s3", "agents": 2, "max_cycles": 8}
    assert header.version == mg.__version__


class Stray(Oracle):
    """Knows what is best and does anything."""

    def act(self, obs=None, memory=None, info=None, greedy=True, rows=None):
        return np.random.default_rng(int(obs["position"].sum())).integers(5, size=self._actions.shape), None


@pytest.mark.parametrize("death", ["team", "individual"])
def test_recorded_games_are_those_that_were_played(death):
    """Replayed from the seed, every state, label, reward and end is the recorded one; learners get the same flags."""
    vec = make_vec(4, death=death, agents=3)
    shown = record(vec, Stray(vec), 9, 3, "somebody who knows better")
    if death == "individual":
        assert not shown.alive.all()
    quota = [3, 2, 2, 2]
    column_of = [source_of(shown, 1, len(shown.game)).collect().columns[i] for i in range(3)]
    t, game = 0, 0
    for row, games in enumerate(quota):
        vec = make_vec(1, death=death, agents=3)
        oracle = Oracle(vec)
        obs, info = vec.reset(seed=3 + row)
        for _ in range(games):
            first, done = True, False
            for name in ("manual", "goal"):
                np.testing.assert_array_equal(shown.texts[name][game], obs[name][0])
            while not done:
                alive = info["alive"][0].copy()
                for name, array in shown.observation.items():
                    np.testing.assert_array_equal(array[t], obs[name][0])
                np.testing.assert_array_equal(shown.labels[t], oracle.best_actions()[0] & alive[:, None])
                np.testing.assert_array_equal(shown.alive[t], alive)
                assert shown.game[t] == game
                obs, rewards, terminated, truncated, info = vec.step(shown.actions[t][None])
                done = info["done"][0]
                np.testing.assert_array_equal(shown.rewards[t], np.where(alive, rewards[0], 0))
                goes_on = alive & ~(terminated | truncated)[0] & ~done
                for i, column in enumerate(column_of):
                    assert column.alive[t, 0] == alive[i]
                    assert column.continues[t, 0] == column.discount[t, 0] == goes_on[i]
                    assert column.restarts[t, 0] == first
                first, t = False, t + 1
            assert shown.won[game] == info["won"][0]
            game += 1
    assert (t, game) == (len(shown.game), 9)
    assert shown.steps == t


def test_the_first_games_of_every_row_are_kept(shown):
    vec = make_vec(4)
    result = play(Oracle(vec), vec, 9, seed=7)
    np.testing.assert_array_equal(shown.won, result.won)
    np.testing.assert_array_equal(np.bincount(shown.game), result.length)
    assert np.take_along_axis(shown.labels, shown.actions[..., None], -1).all()  # it did what it held to be best


def test_of_other_players_the_action_is_the_label():
    vec = make_vec(4)
    shown = record(vec, RandomTeam(2, 5), 12, 0, "chance")
    legal = shown.observation["action_mask"] != 0
    one_hot = np.eye(5, dtype=bool)[shown.actions]
    illegal = ~(one_hot & legal).any(-1)
    assert illegal.any()
    np.testing.assert_array_equal(shown.labels[~illegal & shown.alive], one_hot[~illegal & shown.alive])
    np.testing.assert_array_equal(shown.labels[illegal & shown.alive], legal[illegal & shown.alive])
    assert not shown.labels[~shown.alive].any()


def test_trained_teams_can_be_recorded():
    vec = make_vec(3)
    policies = [build_policy("relread", vec.spec, {}, seed=i) for i in range(2)]
    shown = record(vec, Team(policies, vec.spec), 5, 0, "relread")
    assert shown.header.games == len(shown.won) == 5
    assert (shown.labels.sum(-1) == shown.alive).all()


class Tired(RandomTeam):
    """Stops after so many steps."""

    def __init__(self, steps):
        super().__init__(2, 5)
        self.left = steps

    def act(self, obs, memory=None, info=None, greedy=False):
        if not self.left:
            raise StopRecording
        self.left -= 1
        return super().act(obs, memory, info, greedy)


def test_who_stops_keeps_the_finished_games():
    whole = record(make_vec(3), Tired(1000), 9, 0, "chance")
    heard = []
    some = record(make_vec(3), Tired(5), 9, 0, "chance", tell=heard.append)
    assert 0 < some.header.games == len(some.won) == heard[-1] < 9
    np.testing.assert_array_equal(np.unique(some.game), np.arange(some.header.games))
    for game in range(some.header.games):  # each is one of the whole recording, from its first step to its last
        mine = some.observation["grid"][some.game == game]
        rows = [k for k in range(9) if (whole.texts["manual"][k] == some.texts["manual"][game]).all()]
        assert any(np.array_equal(mine, whole.observation["grid"][whole.game == k]) for k in rows)
    with pytest.raises(ConfigurationError, match="no game was played to its end"):
        record(make_vec(3), Tired(0), 6, 0, "chance")


def test_what_cannot_be_recorded():
    vec = make_vec(2, stage="s5", resample_text=True)
    with pytest.raises(ConfigurationError, match="changes within a game"):
        record(vec, RandomTeam(2, 5), 4, 0, "chance")
    with pytest.raises(ConfigurationError, match="must be positive, got 0"):
        record(make_vec(1), RandomTeam(2, 5), 0, 0, "chance")


def test_recorded_games_are_none_of_a_report():
    assert RECORDING_SEED > REPORT_SEED + 2**32


class Guesser:
    """Always acts, never jumps."""

    def act(self, obs, memory, info, greedy=True):
        return np.zeros(obs["grid"].shape[:2], np.int64), None


def test_a_time_out_that_is_no_loss_is_worth_what_follows():
    vec = ToyGames(num_envs=3, max_cycles=4, time_limit_is_loss=False, end=0.15)
    shown = record(vec, Guesser(), 12, 0, "nobody")
    last = ~shown.acted.any(1)
    assert 0 < last.sum() < 12  # some games were cut off, some ended
    assert shown.alive[last].all()
    assert (np.bincount(shown.game)[shown.game[last]] == 5).all()
    assert (shown.observation["inventory"][last] == 4).all()  # the length: it is the last observation, not the next
    assert shown.steps == (~last).sum()
    column = source_of(shown, 1, len(shown.game)).collect().columns[0]
    before = np.append(last[1:], False)
    ends = np.append(np.diff(shown.game) > 0, True) & ~last
    np.testing.assert_array_equal(column.alive[:, 0], ~last)
    np.testing.assert_array_equal(column.discount[:, 0], ~last & ~ends)
    np.testing.assert_array_equal(column.continues[:, 0], ~last & ~ends & ~before)


@pytest.mark.parametrize(("num_envs", "unroll"), [(1, 5), (4, 3), (7, 16), (5, 1), (3, 1000)])
def test_every_step_is_learnt_from_once_an_epoch(shown, num_envs, unroll):
    rows, n = len(shown.game), 2
    named = replace(shown, rewards=np.arange(1, rows * n + 1, dtype=np.float32).reshape(rows, n))  # a name for each
    source = source_of(named, num_envs, unroll)
    source.start(seed=4)
    assert source.num_chunks == -(-rows // unroll)
    met = []
    for k in range(source.num_chunks):  # so that the last rollout ends with an epoch
        rollout = source.collect(steps=k * num_envs * unroll)
        assert len(rollout.games.won) == 0
        columns = rollout.columns
        met += [[np.sort(np.concatenate([c.reward[:, b][c.alive[:, b]] for c in columns])) for b in range(num_envs)]]
    chunks = [chunk for rollout in met for chunk in rollout]
    acted = np.sort(named.rewards[named.acted])
    orders = []
    for epoch in range(num_envs):
        own = chunks[epoch * source.num_chunks : (epoch + 1) * source.num_chunks]
        np.testing.assert_array_equal(np.sort(np.concatenate(own)), acted)
        orders.append(tuple(float(chunk[0]) for chunk in own))
    if num_envs > 1 and source.num_chunks > 3:
        assert len(set(orders)) > 1


def test_a_chunk_is_a_piece_of_the_stream(shown):
    source = source_of(shown, 6, 4, team_reward=0.5)
    source.start(seed=1)
    rollout = source.collect(steps=48)
    starts = source._draw(48) * 4
    assert len(set(starts.tolist())) == 6
    for b, start in enumerate(starts):
        rows = np.minimum(np.arange(start, start + 5), len(shown.game) - 1)
        for i, column in enumerate(rollout.columns):
            text = column.texts["document"]
            for name, array in text.ids.items():
                np.testing.assert_array_equal(array[text.index[:, b]], shown.texts[name][shown.game[rows]])
            for name, array in shown.observation.items():
                np.testing.assert_array_equal(column.observation[name][:, b], array[rows, i])
            np.testing.assert_array_equal(column.extras[LABELS][:-1, b], shown.labels[rows[:-1], i])
            assert not column.extras[LABELS][-1].any()
            np.testing.assert_array_equal(column.action[:, b], shown.actions[rows[:-1], i])
            mean = shown.rewards[rows[:-1]].mean(1)  # nobody dies alone in these games
            np.testing.assert_allclose(column.reward[:, b], 0.5 * shown.rewards[rows[:-1], i] + 0.5 * mean, rtol=1e-6)


def test_a_resumed_source_goes_on_where_the_other_stopped(shown):
    first, second, other = (source_of(shown, 3, 4) for _ in range(3))
    first.start(seed=11)
    second.resume(first.snapshot(), seed=99)
    other.start(seed=12)
    for steps in (0, 12, 120):
        a, b, c = (source.collect(steps=steps) for source in (first, second, other))
        np.testing.assert_array_equal(a.columns[1].observation["grid"], b.columns[1].observation["grid"])
        np.testing.assert_array_equal(a.columns[1].texts["document"].index, b.columns[1].texts["document"].index)
        assert (a.columns[1].observation["grid"] != c.columns[1].observation["grid"]).any()


def test_recurrent_policies_begin_a_chunk_with_a_fresh_memory(shown):
    assert source_of(shown, 3, 4).collect().columns[0].memory is None
    memory = source_of(shown, 3, 4, [ToyPolicy(recurrent=True)] * 2).collect().columns[1].memory
    assert memory.shape[0] == 3
    assert not memory.any()


def damaged(path, change):
    """The file at `path` with some of its arrays changed, removed (None) or added."""
    with np.load(path) as file:
        arrays = {**dict(file), **change}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def test_who_divides_by_chance_draws_it_anew_for_what_others_played(shown):
    policies = [network("endi_dis_relread", seed=i) for i in range(2)]
    source = source_of(shown, 2, 4, policies)
    noise = [[column.record["noise"] for column in source.collect(steps=steps).columns] for steps in (0, 8, 0)]
    assert noise[0][0].shape == (5, 2, 8, 8)
    assert max((noise[0][0] == other).mean() for other in (noise[0][1], noise[1][0])) < 0.1  # it is rounded
    assert all(np.array_equal(*drawn) for drawn in zip(noise[0], noise[2], strict=True))


def with_header(demonstrations, **changes):
    content = {**asdict(demonstrations.header), **changes}
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def test_files_that_are_no_demonstrations(shown, tmp_path):
    path = tmp_path / "demos.npz"
    with pytest.raises(CheckpointError, match=r"demos.npz cannot be read \(No such file"):
        Demonstrations.load(path)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Demonstrations.load(tmp_path)
    shown.save(path)
    whole = path.read_bytes()
    array, pickled = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros(3))
    np.savez(pickled, header=np.array([{"format": 2}], object))
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    others = (pickle.dumps({"games": 1}), array.getvalue(), pickled.getvalue())
    for data in (whole[:-30], whole[: len(whole) // 3], b"", b"hello", flipped, *others):
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match=r"demos.npz is truncated, damaged or no demonstrations") as error:
            Demonstrations.load(path)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: {"labels": None}, "it has no labels"),
        (lambda d: {"game": None}, "it has no game"),
        (lambda d: {"header": None}, "no demonstrations"),
        (lambda d: {"actions": d.actions[:, :1]}, "actions has shape .*×1 and type int64, expected .*×2 of int64"),
        (lambda d: {"labels": d.labels.astype(np.int8)}, "labels has shape .* type int8, expected .* of bool"),
        (lambda d: {"text/manual": d.texts["manual"][0]}, "text/manual has shape"),
        (lambda d: {"won": d.won[1:]}, "won has shape 8"),
        (lambda d: {"observation/grid": d.observation["grid"][1:]}, "observation/grid has shape"),
        (lambda d: {"game": d.game[::-1].copy()}, "in disorder"),
        (lambda d: {"game": np.minimum(d.game, np.int32(7))}, "in disorder"),
        (lambda d: {"game": d.game + np.int32(1)}, "in disorder"),
        (lambda d: {"labels": np.zeros_like(d.labels)}, "nothing to learn from"),
        (lambda d: {"header": with_header(d, format=1)}, "is of format 1, this version reads format 2"),
        (lambda d: {"header": with_header(d, games=0)}, "holds no games"),
        (lambda d: {"header": with_header(d, colour="red")}, "no demonstrations"),
        (lambda d: {"header": with_header(d, options=3)}, "no demonstrations"),
    ],
)
def test_damaged_contents(shown, tmp_path, change, complaint):
    path = tmp_path / "demos.npz"
    shown.save(path)
    damaged(path, change(shown))
    with pytest.raises(CheckpointError, match=complaint):
        Demonstrations.load(path)


def found(path, vec):
    return find_demonstrations(digests([str(path)]), vec)[1]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: {"header": with_header(d, env="rtfm")}, "shows games of 'rtfm', not of 'ma_rtfm'"),
        (lambda d: {"header": with_header(d, vocabulary="other")}, "another vocabulary"),
        (lambda d: {"header": with_header(d, action_names=list("abcde"))}, "has the actions"),
        (lambda d: {"observation/grid": None}, "has no grid of 8×8×4 int16"),
        (lambda d: {"observation/grid": d.observation["grid"][:, :, 1:]}, "has no grid of 8×8×4 int16"),
        (lambda d: {"observation/grid": d.observation["grid"] + np.int16(999)}, "grid lies outside"),
        (lambda d: {"text/manual": None}, "has no manual of "),
        (lambda d: {"labels": np.ones_like(d.labels)}, "labels actions that are masked"),
    ],
)
def test_demonstrations_of_other_games(shown, tmp_path, change, complaint):
    path = tmp_path / "demos.npz"
    shown.save(path)
    assert_equal(found(path, make_vec(1, max_cycles=99)), Demonstrations.load(path))  # the time limit is free
    damaged(path, change(shown))
    with pytest.raises(CheckpointError, match=complaint):
        found(path, make_vec(1))


def test_demonstrations_of_another_team_split_or_stage(shown, tmp_path):
    path, again = tmp_path / "demos.npz", tmp_path / "again.npz"
    shown.save(path)
    shown.save(again)
    with pytest.raises(CheckpointError, match="shows 2 agents, not 3"):
        found(path, make_vec(1, agents=3))
    with pytest.raises(CheckpointError, match="recorded with split 'train', the run has 'eval'"):
        found(path, make_vec(1, split="eval"))
    with pytest.raises(ConfigurationError, match=r"no demonstrations show s1 of ma_rtfm: .* pass --stages s3$"):
        found(path, make_vec(1, stage="s1"))
    with pytest.raises(ConfigurationError, match=r"demos.npz and .*again.npz both show s3"):
        find_demonstrations(digests([str(path), str(again)]), make_vec(1))


def quiet():
    return Display(Console(file=io.StringIO()))


@pytest.fixture
def weak_oracle(monkeypatch):
    monkeypatch.setattr(baselines, "make_expert", lambda vec: RandomTeam(vec.num_agents, vec.spec.num_actions))


@pytest.fixture
def taught(tmp_path):
    """Settings of a run of two stages that learn from two files."""
    files = []
    for stage in ("s1", "s2"):
        by_oracle(games=20, stage=stage).save(tmp_path / f"{stage}.npz")
        files.append(str(tmp_path / f"{stage}.npz"))
    phases = phases_of({"*": Promotion(steps=120)}, replace(IMITATION, schedule="run"))
    settings = tiny_settings(stages=("s1", "s2"), phases=phases, evaluate_every=None, final_sets=("train",))
    return replace(settings, demonstrations=digests(files))


def weights_of(folder):
    vocabulary_hash = mg.make_vec("ma_rtfm", 1).spec.vocabulary_hash
    weights, _ = load_weights(folder / "s2", env="ma_rtfm", vocabulary_hash=vocabulary_hash, num_agents=2)
    return torch.cat([tensor.flatten() for state in weights for _, tensor in sorted(state.items())])


def test_a_run_learns_from_files_and_resumes_bit_for_bit(taught, tmp_path, monkeypatch, weak_oracle):
    monkeypatch.setattr("magrounding.experiment.stage.make_expert", None)  # no oracle is asked
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    run_curriculum(taught, whole, display=quiet(), device="cpu")
    report = (whole / "report.md").read_text()
    assert all(f"s{k}.npz` (played by oracle)" in report for k in (1, 2))
    assert read_settings(whole) == taught

    iterate, left = StageSession.iterate, iter(range(7))

    def fail(self, steps):
        if next(left, None) is None:
            raise RuntimeError("killed")
        return iterate(self, steps)

    monkeypatch.setattr(StageSession, "iterate", fail)
    with pytest.raises(RuntimeError):
        run_curriculum(taught, broken, display=quiet(), device="cpu")
    monkeypatch.setattr(StageSession, "iterate", iterate)
    assert not (broken / "s2").exists()  # in the middle of its phase
    file = tmp_path / "s2.npz"
    content = file.read_bytes()
    by_oracle(games=20, stage="s2", seed=99).save(file)
    with pytest.raises(CheckpointError, match=r"s2.npz is not the file that the run began with"):
        run_curriculum(read_settings(broken), broken, resume=True, display=quiet(), device="cpu")
    file.write_bytes(content)
    run_curriculum(read_settings(broken), broken, resume=True, display=quiet(), device="cpu")
    assert torch.equal(weights_of(broken), weights_of(whole))
    assert read_json(broken / "s1" / "state.json")["files"] == read_json(whole / "s1" / "state.json")["files"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"stages": ("s1", "s2", "s3")}, "no demonstrations show s3 of ma_rtfm: .* pass --stages s1,s2"),
        ({"phases": phases_of({"*": Promotion(steps=60)})}, "preset 'tiny' has no phase that learns from demonstr"),
        ({"phases": phases_of({"*": Promotion(win_rate=0.5)}, IMITATION)}, "waits for wins"),
        ({"phases": phases_of({"*": Promotion(9, 0.5, rule="all")}, IMITATION)}, "waits for wins"),
    ],
)
def test_runs_that_files_cannot_teach(taught, tmp_path, changes, complaint):
    stages = changes.pop("stages", taught.stages)
    settings = replace(taught, stages=stages, preset=replace(taught.preset, **changes))
    with pytest.raises(ConfigurationError, match=complaint):
        run_curriculum(settings, tmp_path / "run", display=quiet(), device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_student_of_files_beats_chance():
    options = {"stage": "s1", "agents": 2, "max_cycles": 30}
    vec = mg.make_vec("ma_rtfm", 64, **options)
    shown = record(vec, Oracle(vec), 600, RECORDING_SEED, "oracle")
    policies = [build_policy("relread", vec.spec, {}, seed=i) for i in range(2)]
    config = ImitationConfig(unroll=16, warm_up=1, anneal_steps=1e9, learning_rate=3e-3)
    learners = [ImitationLearner(policy, config) for policy in policies]
    source = source_of(shown, 32, 16, policies)
    source.start(seed=0)
    for k in range(24):
        rollout = source.collect(steps=512 * k)
        for i, learner in enumerate(learners):
            report = learner.update(rollout.columns[i], 512 * k)
    chance = evaluate(RandomTeam(2, 5), "ma_rtfm", options, 200).won.mean()
    student = evaluate(Team(policies, vec.spec), "ma_rtfm", options, 200).won.mean()
    assert report["agreement"] > 0.6
    assert student > chance + 0.2


def rewritten(path, name, data, **facts):
    """The file at `path` with a member added or replaced, and facts of its directory entry changed."""
    with zipfile.ZipFile(path) as file:
        members = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for other, content in {**members, name: data}.items():
            file.writestr(other, content)
        for fact, value in facts.items():
            setattr(file.getinfo(name), fact, value)


def header_of_array(shape, dtype="<i4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def peak_of(action):
    """Bytes that Python and NumPy have allocated at most in between."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["extra", "observation/extra"])
def test_what_no_game_shows_is_not_read(shown, tmp_path, name):
    path = tmp_path / "demos.npz"
    shown.save(path)
    whole, size = Demonstrations.load(path), 2**26
    rewritten(path, f"{name}.npy", header_of_array((size // 4,)) + bytes(size))
    assert path.stat().st_size < 2**20
    assert peak_of(lambda: assert_equal(Demonstrations.load(path), whole)) < size / 4
    assert peak_of(lambda: found(path, make_vec(1))) < size / 4


@pytest.mark.parametrize("name", ["game", "observation/grid", "header"])
def test_an_array_that_says_it_is_larger_than_it_can_be(shown, tmp_path, name):
    path = tmp_path / "demos.npz"
    for shape in ((2**40,), (2**40, 2, 8, 8, 4), (2**62, 2**62), (-1,)):
        shown.save(path)
        rewritten(path, f"{name}.npy", header_of_array(shape))
        with pytest.raises(CheckpointError, match=f"{name} says that it has"):
            Demonstrations.load(path)
    shown.save(path)
    rewritten(path, f"{name}.npy", header_of_array((2**38,)), file_size=len(header_of_array((2**38,))) + 2**40)
    with pytest.raises(CheckpointError, match="more bytes than can be in the file"):
        Demonstrations.load(path)


def test_an_array_that_is_encrypted_or_compressed_otherwise(shown, tmp_path):
    path = tmp_path / "demos.npz"
    shown.save(path)
    with zipfile.ZipFile(path) as file:
        game = file.read("game.npy")
    rewritten(path, "game.npy", game, flag_bits=1)
    with pytest.raises(CheckpointError, match="game is encrypted"):
        Demonstrations.load(path)
    shown.save(path)
    rewritten(path, "game.npy", game, compress_type=zipfile.ZIP_LZMA)
    with pytest.raises(CheckpointError, match="compressed in a way that NumPy does not use"):
        Demonstrations.load(path)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"games": 40.0}, r"games of its header is 40\.0, expected int"),
        ({"games": True}, "games of its header is True"),
        ({"agents": 2.0}, "agents of its header"),
        ({"env": ["ma_rtfm"]}, "env of its header"),
        ({"action_names": [1, 2]}, "names no agents or no actions"),
        ({"options": {"stage": ["s3"]}}, r"shows \['s3'\], which is no stage"),
        ({"options": {"stage": "s9"}}, "shows 's9', which is no stage"),
    ],
)
def test_headers_of_other_kinds(shown, tmp_path, changes, complaint):
    path = tmp_path / "demos.npz"
    shown.save(path)
    damaged(path, {"header": with_header(shown, **changes)})
    with pytest.raises(CheckpointError, match=complaint):
        found(path, make_vec(1))


@pytest.mark.parametrize("text", [b"[" * 100_000, b"[]", b"3", b'{"format": 2', b'{"a":' * 50_000])
def test_headers_that_are_none(shown, tmp_path, text):
    path = tmp_path / "demos.npz"
    shown.save(path)
    damaged(path, {"header": np.frombuffer(text, np.uint8)})
    with pytest.raises(CheckpointError, match="truncated, damaged or no demonstrations"):
        Demonstrations.load(path)
