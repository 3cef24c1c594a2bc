"""Learning from demonstrations: learners meet every step of every game, and a run that files teach resumes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from magrounding.agents.policy import LABELS
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment import evaluate as evaluation
from magrounding.experiment.config import read_config
from magrounding.experiment.phase import Promotion
from magrounding.experiment.stage import StageSession
from magrounding.storage import read_json
from magrounding.teams.scripted import RandomTeam
from magrounding.training.demonstrations import digests
from tests.endi.games import network
from tests.experiment.tiny_runs import IMITATION, learn, phases_of, resume, tiny_settings, weights_of
from tests.training.recorded_games import by_oracle, make_vec, source_of


@pytest.fixture(scope="module")
def shown():
    return by_oracle()


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
        assert len(rollout.episodes.won) == 0
        trajectories = rollout.trajectories
        met += [
            [np.sort(np.concatenate([c.reward[:, b][c.alive[:, b]] for c in trajectories])) for b in range(num_envs)]
        ]
    chunks = [chunk for rollout in met for chunk in rollout]
    acted = np.sort(named.rewards[named.acted])
    orders = []
    for epoch in range(num_envs):
        own = chunks[epoch * source.num_chunks : (epoch + 1) * source.num_chunks]
        np.testing.assert_array_equal(np.sort(np.concatenate(own)), acted)
        orders.append(tuple(float(chunk[0]) for chunk in own))
    if num_envs > 1 and source.num_chunks > 3:
        assert len(set(orders)) > 1


@pytest.mark.parametrize("options", [{}, {"stage": "s2g", "reading": "kind"}])
def test_a_chunk_is_a_piece_of_the_stream(options):
    shown, spec = by_oracle(**options), make_vec(1, **options).spec
    assert bool(options) == (shown.actions >= 5).any()  # tells
    source = source_of(shown, 6, 4, spec=spec, team_reward=0.5)
    source.start(seed=1)
    rollout = source.collect(steps=48)
    starts = source._draw(48) * 4
    assert len(set(starts.tolist())) == 6
    for b, start in enumerate(starts):
        rows = np.minimum(np.arange(start, start + 5), len(shown.game) - 1)
        for i, trajectory in enumerate(rollout.trajectories):
            text = trajectory.texts["document"]
            for name, array in text.ids.items():
                read = shown.texts[name][shown.game[rows]] if name in shown.texts else shown.observation[name][rows, i]
                np.testing.assert_array_equal(array[text.index[:, b]], read)
            for name in shown.observation.keys() - spec.unshared_texts:
                np.testing.assert_array_equal(trajectory.observation[name][:, b], shown.observation[name][rows, i])
            np.testing.assert_array_equal(trajectory.extras[LABELS][:-1, b], shown.labels[rows[:-1], i])
            assert not trajectory.extras[LABELS][-1].any()
            np.testing.assert_array_equal(trajectory.action[:, b], shown.actions[rows[:-1], i])
            mean = shown.rewards[rows[:-1]].mean(1)  # nobody dies alone in these games
            np.testing.assert_allclose(
                trajectory.reward[:, b], 0.5 * shown.rewards[rows[:-1], i] + 0.5 * mean, rtol=1e-6
            )


def test_a_resumed_source_goes_on_where_the_other_stopped(shown):
    first, second, other = (source_of(shown, 3, 4) for _ in range(3))
    first.start(seed=11)
    second.resume(first.snapshot(), seed=99)
    other.start(seed=12)
    for steps in (0, 12, 120):
        a, b, c = (source.collect(steps=steps) for source in (first, second, other))
        np.testing.assert_array_equal(a.trajectories[1].observation["grid"], b.trajectories[1].observation["grid"])
        np.testing.assert_array_equal(
            a.trajectories[1].texts["document"].index, b.trajectories[1].texts["document"].index
        )
        assert (a.trajectories[1].observation["grid"] != c.trajectories[1].observation["grid"]).any()


def test_who_divides_by_chance_draws_it_anew_for_what_others_played(shown):
    policies = [network("endi_dis_relread", seed=i) for i in range(2)]
    source = source_of(shown, 2, 4, policies)
    noise = [
        [trajectory.record["noise"] for trajectory in source.collect(steps=steps).trajectories] for steps in (0, 8, 0)
    ]
    assert noise[0][0].shape == (5, 2, 8, 8)
    assert max((noise[0][0] == other).mean() for other in (noise[0][1], noise[1][0])) < 0.1  # it is rounded
    assert all(np.array_equal(*drawn) for drawn in zip(noise[0], noise[2], strict=True))


@pytest.fixture
def weak_oracle(monkeypatch):
    monkeypatch.setattr(evaluation, "make_expert", lambda vec: RandomTeam(vec.num_agents, vec.spec.num_actions))


@pytest.fixture
def taught(tmp_path):
    """Settings of a run of two stages that learn from two files."""
    files = []
    for stage in ("s1", "s2"):
        by_oracle(games=20, stage=stage).save(tmp_path / f"{stage}.npz")
        files.append(str(tmp_path / f"{stage}.npz"))
    phases = phases_of(120, replace(IMITATION, schedule="run"))
    settings = tiny_settings(stages=("s1", "s2"), phases=phases, every=None, final_sets=("train",))
    return replace(settings, demonstrations=digests(files))


def test_a_run_learns_from_files_and_resumes_bit_for_bit(taught, tmp_path, monkeypatch, weak_oracle):
    monkeypatch.setattr("magrounding.experiment.stage.make_expert", None)  # no oracle is asked
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    learn(taught, whole)
    report = (whole / "report.md").read_text()
    assert all(f"s{k}.npz oracle" in report for k in (1, 2))
    assert read_config(whole) == taught

    iterate, left = StageSession.iterate, iter(range(7))

    def fail(self, steps):
        if next(left, None) is None:
            raise RuntimeError("killed")
        return iterate(self, steps)

    monkeypatch.setattr(StageSession, "iterate", fail)
    with pytest.raises(RuntimeError):
        learn(taught, broken)
    monkeypatch.setattr(StageSession, "iterate", iterate)
    assert not (broken / "s2").exists()  # in the middle of its phase
    file = tmp_path / "s2.npz"
    content = file.read_bytes()
    by_oracle(games=20, stage="s2", seed=99).save(file)
    with pytest.raises(CheckpointError):
        resume(broken)
    file.write_bytes(content)
    resume(broken)
    assert torch.equal(weights_of(broken, "s2"), weights_of(whole, "s2"))
    assert read_json(broken / "s1" / "state.json")["files"] == read_json(whole / "s1" / "state.json")["files"]


@pytest.mark.parametrize(
    "changes",
    [
        {"stages": ("s1", "s2", "s3")},  # no demonstrations show s3
        {"phases": phases_of(60)},  # no phase learns from them
        {"phases": phases_of({"*": Promotion(win_rate=0.5)}, IMITATION)},  # games that nobody plays have no wins
        {"phases": phases_of({"*": Promotion(9, 0.5, rule="all")}, IMITATION)},
    ],
)
def test_runs_that_files_cannot_teach(taught, tmp_path, changes):
    settings = replace(taught, **changes)
    with pytest.raises(ConfigurationError):
        learn(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_phase_learns_from_files_of_the_games_that_it_plays(taught, tmp_path, weak_oracle):
    """These may be other ones than its stage has; a file that does not show them is refused before anything runs."""
    (phase,) = phases_of(30, IMITATION)["*"]
    phases = {"*": (replace(phase, env_options={"size": 7}),)}
    taught = replace(taught, stages=("s1",), phases=phases)

    def learn_from(size):
        by_oracle(games=4, stage="s1", size=size).save(tmp_path / f"{size}.npz")
        own = replace(taught, demonstrations=digests([str(tmp_path / f"{size}.npz")]))
        learn(own, tmp_path / f"run_{size}")

    learn_from(7)
    assert (tmp_path / "run_7" / "report.md").exists()
    with pytest.raises(CheckpointError):
        learn_from(8)
    assert not (tmp_path / "run_8").exists()
