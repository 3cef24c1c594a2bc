"""Sample efficiency: the fitted curve finds a planted number, and the command trains, goes on and says what is open."""

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.sample_efficiency import __main__ as command
from benchmarks.sample_efficiency import interactive
from benchmarks.sample_efficiency.comparison import (
    INTERACTIVE,
    Pair,
    compared,
    compared_to_json,
    plot_compared,
)
from benchmarks.sample_efficiency.interactive import Chain, Growth, failed_missions, first_mission
from benchmarks.sample_efficiency.page import PAPER, Demonstrations, Episodes, markdown
from benchmarks.sample_efficiency.posterior import fit
from magrounding.cli import train
from magrounding.cli.train import requested
from magrounding.experiment.config import read_config
from magrounding.experiment.metrics import MetricsLog
from magrounding.extensions.cluster.cli import sweep
from magrounding.extensions.cluster.sweep.record import GRID, Point, Sweep, SweepFolder, measured
from magrounding.registry import env_entry
from magrounding.storage import read_json
from magrounding.teams.evaluate import REPORT_SEED, SELECTION_SEED
from magrounding.training.demonstrations import Demonstrations as Demonstrated
from magrounding.training.recording import RECORDING_SEED
from tests.full import in_the_full_suite

NUMBERS = [125 * 2 ** (k / 2) for k in range(11)]


def rates(solved_at, noise, seed=0):
    """Success that grows with the number of demonstrations and passes 99 % at a planted one."""
    random = np.random.default_rng(seed)
    return [min(1.0, 1 - 0.01 * solved_at / k + random.normal(0, noise)) for k in NUMBERS]


@pytest.mark.parametrize("solved_at", [500, 1250])
def test_the_interval_holds_the_planted_number(solved_at):
    pytest.importorskip("sklearn")
    intervals = [fit(NUMBERS, rates(solved_at, 0.001, seed)) for seed in range(3)]
    assert all(0.8 * solved_at < curve.median < 1.25 * solved_at for curve in intervals)
    assert all(curve.low < curve.median < curve.high for curve in intervals)
    assert sum(curve.low <= solved_at <= curve.high for curve in intervals) >= 2


def test_a_level_that_no_number_solves_has_no_interval():
    pytest.importorskip("sklearn")
    curve = fit(NUMBERS, [0.95 + 0.002 * k for k in range(len(NUMBERS))])
    assert curve.high is None
    assert curve.above > 0.5
    level = Demonstrations("GoTo", [(125, 0.95)], curve)
    assert level.interval is None
    assert "not reached at the largest" in level.note


def test_episodes_have_the_interval_of_a_t_test():
    level = Episodes("GoToLocal", [100, 200, 400])
    low, high = level.interval
    assert level.estimate == pytest.approx(200) == pytest.approx((low * high) ** 0.5)
    half = 9.925 * np.log(2) / 3**0.5  # t of 2 degrees of freedom at 99.5 %
    assert np.log(high / low) / 2 == pytest.approx(half, rel=1e-3)
    unsolved = Episodes("GoToLocal", [100, None])
    assert (unsolved.estimate, unsolved.interval) == (None, None)
    assert "1 of 2 seeds" in markdown([unsolved], "x")


def test_two_ways_stand_beside_each_other():
    pytest.importorskip("sklearn")
    ways = [command.fitted("GoToLocal", list(zip(NUMBERS, rates(n, 0.001), strict=True))) for n in (1000, 500)]
    pair = Pair("GoToLocal", *ways, PAPER["GoToLocal"], Episodes("GoToLocal", [4000]))
    assert pair.ratio == pytest.approx(0.5, rel=0.25)
    assert replace(pair, usual=None).ratio is None
    row = next(line for line in compared([pair], INTERACTIVE, "x").splitlines() if line.startswith("| GoToLocal"))
    assert f"| {pair.ratio:.2f} |" in row
    assert "148,500 to 193,200" in row
    assert "| 4,000 |" in row
    found = compared_to_json([pair], INTERACTIVE)["GoToLocal"]
    assert found["cloning"]["estimate"] == ways[0].estimate
    assert found["interactive"]["interval"] == ways[1].interval
    assert plot_compared([pair, replace(pair, usual=None)], INTERACTIVE)[:4] == b"\x89PNG"


@pytest.mark.parametrize("typed", ["--levels GoToNowhere", "--demonstrations 80,20", "--interactive --growth 0.9"])
def test_bad_input_is_refused_before_anything_is_trained(typed, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["x", *typed.split(), "--out", str(tmp_path / "out")])
    assert command.main() == 2
    assert not (tmp_path / "out").exists()


TINY = ("--demonstrations", "4,8", "--octave", "1", "--budget", "0.002", "--missions", "4")


def run(monkeypatch, folder, *words):
    options = command._options
    monkeypatch.setattr(sys, "argv", ["x", *TINY, "--out", str(folder), *words])
    with monkeypatch.context() as patch:
        patch.setattr(command, "_options", lambda *asked: {**options(*asked), "workers": 0})  # they start for seconds
        return command.main()


def weights_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}


@pytest.mark.parametrize(
    ("rates", "over"),
    [
        ([], False),
        ([0.96, 0.98, 0.99], False),  # once may be luck
        ([0.96, 0.98, 0.99, 0.995], True),
        ([0.9, 0.9, 0.99, 0.995], False),  # too few for a curve
        ([0.96, 0.99, 0.99, 0.98], False),
        ([0.1] * 6, True),
    ],
)
def test_rounds_end_when_a_level_is_solved_for_sure(rates, over):
    assert Growth(8, 2**0.25, 6).over([(8 + k, rate) for k, rate in enumerate(rates)]) == over


def test_failed_missions_are_those_that_the_agent_lost():
    def won(seed):
        return np.arange(seed, seed + 8) % 5 != 0

    assert failed_missions(won, 100, 4) == [100, 105, 110, 115]
    asked = []
    assert failed_missions(lambda seed: asked.append(seed) or np.ones(8, np.bool_), 100, 1) == []
    assert asked == list(range(100, 300, 8))  # 200 missions, of which one that fails 1 % would fail two


def test_missions_are_of_training_and_never_the_same():
    firsts = [first_mission(seed, number) for seed in (0, 1, 2**32 - 1) for number in range(64)]
    assert firsts == sorted(set(firsts))
    assert np.diff(firsts).min() >= 2**22
    assert min(firsts) >= RECORDING_SEED > max(REPORT_SEED, SELECTION_SEED)
    assert max(firsts) < 2**62
    asked = train.Arguments(**command._options(command.Arguments(), "GoToLocal", "quick"))
    chain = Chain(asked, Growth(8, 2, 2), Path())
    options = {**chain.config.entry.options, **chain.config.resolve().segments[0].games.options}
    assert options["split"] == "train"


def measure(run, config, won):
    """Write down what a run has won, by ways of playing `test`, after its only stage."""
    run.path.mkdir(parents=True)
    run.write_config(config.as_dict())
    with closing(MetricsLog(run.seed(0, 1), 0, print)) as log:
        for play, rate in won.items():
            line = {"kind": "evaluation", "seed": 0, "stage": "GoTo", "phase": "imitate", "games": 100, "steps": 60}
            line |= {"total_steps": 60, "set": "test", "when": "after", "manual": "true"}
            log.write({**line, "play": play, "win_rate": rate})


def test_success_is_that_of_greedy_play(tmp_path, monkeypatch):
    options = command._options(command.Arguments(), "GoTo", "quick")
    asked = sweep.Arguments(over=("learning.demonstrations=4,8",), **options)
    config = measured(requested(asked))
    folder = SweepFolder(tmp_path)
    points = [Point({"learning.demonstrations": "4"}), Point({"learning.demonstrations": "8"})]
    folder.write(Sweep(asked.over, GRID, 2, config.as_dict(), "the command", points))
    measure(folder.run(1), config, {"greedy": 0.5, "sampled": 0.25})
    assert command._sweep_points(folder) == [(8, 0.5)]

    chain = Chain(train.Arguments(**options), Growth(8, 2, 2), tmp_path)
    monkeypatch.setattr(interactive, "unfinished", lambda settings, run: {})
    monkeypatch.setattr(Demonstrated, "load", lambda path: SimpleNamespace(header=SimpleNamespace(games=7)))
    assert chain.points() == []
    measure(chain.run(0), chain.config, {"greedy": 0.75, "sampled": 0.25})
    assert chain.points() == [(7, 0.75)]


@in_the_full_suite("three runs, each evaluated")
def test_rounds_go_on_with_the_missions_that_were_failed(monkeypatch, tmp_path, capsys):
    pytest.importorskip("minigrid")
    pytest.importorskip("sklearn")
    words = "--interactive", "--start", "4", "--growth", "1.5", "--rounds"
    assert run(monkeypatch, tmp_path, *words, "1") == 0
    folder = tmp_path / "GoToRedBallGrey-viewread-interactive" / "seed_0"
    first, before = Demonstrated.load(folder / "round_0.npz"), weights_of(tmp_path)
    assert run(monkeypatch, tmp_path, *words, "2") == 0
    assert before.items() < weights_of(tmp_path).items()  # the first round, and DAgger, were not trained again
    second = Demonstrated.load(folder / "round_1.npz")
    assert (first.header.games, second.header.games) == (4, 6)
    assert env_entry("babyai").configure(**second.header.options).split == "train"
    assert second.won.all()
    for name, seen in first.observation.items():
        assert np.array_equal(second.observation[name][: len(seen)], seen)
    config = read_config(folder / "round_1")
    assert list(config.demonstrations) == [str((folder / "round_1.npz").absolute())]
    found = read_json(tmp_path / "interactive.json")["GoToRedBallGrey"]
    assert [k for k, _ in found["interactive"]["points"]] == [4, 6]
    assert found["dagger"]["episodes"] == [None]
    assert (tmp_path / "interactive.png").stat().st_size > 1000
    assert run(monkeypatch, tmp_path, "--interactive", "--start", "5", "--rounds", "2") == 2


@in_the_full_suite("a base and two sweeps")
def test_a_target_is_learnt_from_what_its_base_has_taught(monkeypatch, tmp_path, capsys):
    pytest.importorskip("minigrid")
    pytest.importorskip("sklearn")
    words = "--pretraining", "--levels", "PickupLoc", "--base-demonstrations", "8"
    assert run(monkeypatch, tmp_path, *words) == 0
    base = (tmp_path / "bases" / "GoToLocal-viewread").absolute()
    swept = SweepFolder(tmp_path / "PickupLoc-viewread-after-GoToLocal-viewread").read()
    assert swept.config.initial == str(base)
    assert [each.values for each in swept.points] == [{"learning.demonstrations": k} for k in ("4", "8")]
    assert not SweepFolder(tmp_path / "PickupLoc-viewread").read().config.initial
    found = read_json(tmp_path / "pretraining.json")["PickupLoc after GoToLocal"]
    assert [k for k, _ in found["pretrained"]["points"]] == [k for k, _ in found["from scratch"]["points"]] == [4, 8]
    assert found["paper"] == [list(PAPER["PickupLoc"][0]), [71_200, 88_900]]
    assert (tmp_path / "pretraining.png").stat().st_size > 1000
    before = weights_of(tmp_path)
    assert len(before) >= 5  # a base, and two runs in two ways
    assert run(monkeypatch, tmp_path, *words) == 0
    assert weights_of(tmp_path) == before
    assert run(monkeypatch, tmp_path, *words, "--missions", "9") == 2


@in_the_full_suite("a sweep and a run, each evaluated")
@pytest.mark.parametrize("more", [(), ("--reinforcement",)])
def test_a_level_is_trained_once(more, monkeypatch, capsys, tmp_path):
    pytest.importorskip("minigrid")
    words = "--levels", "GoToRedBallGrey", *more
    assert run(monkeypatch, tmp_path, *words) == 0
    first = read_json(tmp_path / "efficiency.json")
    assert first["GoToRedBallGrey"]["estimate"] is None  # nothing is learnt of so little
    page = (tmp_path / "efficiency.md").read_text()
    assert ("not solved by 1 of 1 seeds" if more else "train with more demonstrations") in page
    assert (tmp_path / "efficiency.png").stat().st_size > 1000
    before = weights_of(tmp_path)
    assert run(monkeypatch, tmp_path, *words) == 0
    assert weights_of(tmp_path) == before
    assert read_json(tmp_path / "efficiency.json") == first


def test_rounds_stand_beside_a_sweep_of_other_seeds_and_of_no_other_options(monkeypatch, capsys, tmp_path):
    pytest.importorskip("minigrid")
    sweep_of = command.Arguments(seeds="0", missions=4, budget=0.001, out=tmp_path)
    asked = sweep.Arguments(over=("learning.demonstrations=4,8",), **command._options(sweep_of, "GoToLocal", "quick"))
    folder = SweepFolder(tmp_path / "GoToLocal-viewread")
    folder.path.mkdir()
    folder.write(Sweep(asked.over, GRID, 2, measured(requested(asked)).as_dict(), "the command"))
    beside = command._swept(replace(sweep_of, seeds="0,1,2"), "GoToLocal")
    assert beside is not None
    assert beside.points == []
    assert run(monkeypatch, tmp_path, "--interactive", "--levels", "GoToLocal", "--missions", "9") == 2
    assert not list(tmp_path.glob("GoToLocal-viewread-interactive"))  # before anything is trained
