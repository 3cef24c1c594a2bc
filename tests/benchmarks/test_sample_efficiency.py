"""Sample efficiency: the fitted curve finds a planted number, and the command trains, goes on and says what is open."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.sample_efficiency import __main__ as command
from benchmarks.sample_efficiency.page import PAPER, Demonstrations, Episodes, markdown
from benchmarks.sample_efficiency.posterior import FEWEST, fit
from magrounding.cli import sweep
from magrounding.cli.train import requested
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.sweep.record import GRID, Sweep, SweepFolder, measured
from magrounding.storage import read_json
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


def test_more_noise_means_a_wider_interval():
    pytest.importorskip("sklearn")
    sure, unsure = (fit(NUMBERS, rates(1250, noise)) for noise in (0.0005, 0.006))
    assert unsure.high / unsure.low > sure.high / sure.low


def test_a_level_that_no_number_solves_has_no_interval():
    pytest.importorskip("sklearn")
    curve = fit(NUMBERS, [0.95 + 0.002 * k for k in range(len(NUMBERS))])
    assert curve.high is None
    assert curve.above > 0.5
    level = Demonstrations("GoTo", [(125, 0.95)], curve)
    assert level.interval is None
    assert "not reached at the largest" in level.note


@pytest.mark.parametrize("found", [[0.9] * 11, [*[0.9] * (12 - FEWEST), *[0.99] * (FEWEST - 1)]])
def test_too_few_runs_that_learnt_are_refused(found):
    with pytest.raises(ConfigurationError, match="train with more demonstrations"):
        fit(NUMBERS, found)


def test_episodes_have_the_interval_of_a_t_test():
    low, high = Episodes("GoToLocal", [100, 110, 120]).interval
    assert (low + high) / 2 == pytest.approx(110)
    assert (high - low) / 2 == pytest.approx(9.925 * 10 / 3**0.5, rel=1e-3)  # t of 2 degrees of freedom at 99.5 %
    unsolved = Episodes("GoToLocal", [100, None])
    assert (unsolved.estimate, unsolved.interval) == (None, None)
    assert "1 of 2 seeds" in markdown([unsolved], "x")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--levels", "GoToNowhere"), "unknown level 'GoToNowhere'"),
        (("--demonstrations", "8"), "takes the fewest and the most"),
        (("--demonstrations", "80,20"), "is no range"),
        (("--pretraining", "--levels", "GoToRedBall"), "unknown level 'GoToRedBall'"),
        (("--pretraining", "--reinforcement"), "leave out one"),
    ],
)
def test_bad_input_is_one_sentence(typed, message, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["x", *typed, "--out", str(tmp_path / "out")])
    assert command.main() == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_numbers_are_spaced_evenly_by_their_logarithms():
    numbers = command.numbers_of(command.Arguments(demonstrations="250,2000"), "GoTo")
    assert numbers == [250, 354, 500, 707, 1000, 1414, 2000]
    assert set(command.LEVELS) == set(PAPER)


TINY = ("--demonstrations", "4,8", "--octave", "1", "--budget", "0.002", "--missions", "4")


def run(monkeypatch, folder, *words):
    monkeypatch.setattr(sys, "argv", ["x", *TINY, "--out", str(folder), *words])
    return command.main()


def weights_of(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.safetensors")}


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
    assert "was begun with other numbers or options" in capsys.readouterr().err


@in_the_full_suite("a sweep and a run, each evaluated")
@pytest.mark.parametrize("more", [(), ("--reinforcement",)])
def test_a_level_is_trained_once(more, monkeypatch, capsys, tmp_path):
    pytest.importorskip("minigrid")
    words = ["--levels", "GoToRedBallGrey", "--demonstrations", "4,8", "--octave", "1", "--budget", "0.002"]
    monkeypatch.setattr(sys, "argv", ["x", *words, "--missions", "4", "--out", str(tmp_path), *more])
    assert command.main() == 0
    first = read_json(tmp_path / "efficiency.json")
    assert first["GoToRedBallGrey"]["estimate"] is None  # nothing is learnt of so little
    page = (tmp_path / "efficiency.md").read_text()
    assert ("not solved by 1 of 1 seeds" if more else "train with more demonstrations") in page
    assert (tmp_path / "efficiency.png").stat().st_size > 1000
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors"))
    assert command.main() == 0
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")) == before
    assert read_json(tmp_path / "efficiency.json") == first


def test_a_sweep_of_other_options_is_refused(tmp_path):
    arguments = command.Arguments(demonstrations="4,8", missions=4)
    asked = sweep.Arguments(over=("learning.demonstrations=4,8",), **command._options(arguments, "GoTo", "quick"))
    folder = SweepFolder(tmp_path)
    folder.write(Sweep(asked.over, GRID, 2, measured(requested(asked)).as_dict(), "the command"))
    command._check(folder, asked)
    for changed in ({"over": ("learning.demonstrations=4,16",)}, {"budget": 0.5}, {"games": 9}, {"seeds": "0,1"}):
        with pytest.raises(CheckpointError, match=r"other numbers or options: .* of: the command"):
            command._check(folder, replace(asked, **changed))
