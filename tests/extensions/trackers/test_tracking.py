"""Which steps trackers get, and when; that none of them stops a run. Real services are in test_trackers.py."""

import math
import os
import sys
import threading
from contextlib import closing
from functools import partial, partialmethod
from typing import ClassVar

import msgspec
import pytest

from magrounding import registry
from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment import curriculum
from magrounding.experiment.callbacks import RunState
from magrounding.experiment.checkpoint import Position
from magrounding.experiment.metrics import MetricsLog, read_metrics
from magrounding.extensions.trackers.cli import track as cli_track
from magrounding.extensions.trackers.mlflow_run import accepted
from magrounding.extensions.trackers.tensorboard_events import TensorBoard
from magrounding.extensions.trackers.tracking import Sender, Tracking, track, tracking_of
from magrounding.registry import Registry, TrackerEntry
from magrounding.run_folder import METRICS_FILE, RunFolder, SeedFolder
from magrounding.storage import json_text, read_json
from tests.experiment.tiny_runs import killed_run, learn, phases_of, tiny_settings
from tests.forked import full_disk

BRIEF = {"stages": ("s1",), "phases": phases_of(60), "every": None, "final_sets": ("eval",)}


class Kept:
    """A service that keeps what it gets for as long as the test lasts."""

    shown: ClassVar[dict] = {}  # (project, name) → [(step, metrics)]

    def __init__(self, folder):
        pass

    def start(self, project, name, config):
        self.steps = self.shown.setdefault((project, name), [])
        return max((step for step, _ in self.steps), default=-1)

    def log(self, step, metrics):
        self.steps.append((step, dict(metrics)))

    def close(self):
        pass


class Deaf(Kept):
    """One whose server does not answer."""

    def start(self, project, name, config):
        threading.Event().wait()


class RefusesStart(Kept):
    def start(self, project, name, config):
        raise ConnectionError("nobody listens\nat this address")


class RefusesLog(Kept):
    def log(self, step, metrics):
        sys.exit("no more")


class RefusesClose(Kept):
    def start(self, project, name, config):
        self.steps = []
        return -1

    def close(self):
        raise ValueError


OWN = (Kept, Deaf, RefusesStart, RefusesLog, RefusesClose)


@pytest.fixture(autouse=True)
def own_trackers(monkeypatch):
    known = Registry("tracker", TrackerEntry)
    for entry in registry.TRACKERS.values():
        known.add(entry)
    for each in OWN:
        known.add(TrackerEntry(each.__name__, f"{__name__}:{each.__name__}"))
    monkeypatch.setattr("magrounding.extensions.trackers.tracking.tracker_entry", known.find)
    monkeypatch.setattr(Kept, "shown", {})


def line(step, stage="s1", **more):
    return {"kind": "train", "stage": stage, "phase": "reinforce", "total_steps": step, **more}


def send(folder, lines, *behind, finished=False, complete=False, say=lambda sentence: None):
    """Send lines that a checkpoint holds, and those behind it; `complete`: the run was finished as it began."""
    state = RunState(tiny_settings().resolve(), RunFolder(folder), 0, at=Position(finished=complete))
    sender = Sender(Tracking(("Kept",)), say, say)
    sender.on_start(state)
    for each in lines:
        sender.on_line(state, each)
    sender.on_checkpoint(state)
    for each in behind:
        sender.on_line(state, each)
    state.at.finished = finished
    sender.on_end(state, None)


def shown():
    (found,) = Kept.shown.values()
    return found


def test_what_is_not_finite_is_left_out_both_ways_and_told(tmp_path):
    """While a run trained trackers got NaN and infinity, which its file does not keep."""
    said = []
    lines = [line(10, loss=math.nan, win_rate=0.5), line(20, loss=math.inf, win_rate=0.75), line(30, loss=0.25)]
    for folder, each in ("written", lines), ("read", msgspec.json.decode(json_text(lines))):
        send(tmp_path / folder, each, finished=True, say=said.append)
        assert shown() == [
            (10, {"s1/reinforce/win_rate": 0.5}),
            (20, {"s1/reinforce/win_rate": 0.75}),
            (30, {"s1/reinforce/loss": 0.25}),
        ]
        Kept.shown.clear()
    assert len(said) == 2
    assert all("loss" in each and "win_rate" not in each for each in said)


def test_a_step_is_sent_once_it_is_whole_and_held_by_a_checkpoint(tmp_path):
    begun, again = [line(10, win_rate=0.5), line(10, "s2", win_rate=0.25)], line(10, win_rate=0.75)
    send(tmp_path, [*begun, line(10, games=3)], again, line(20, win_rate=0.5))  # behind a checkpoint
    assert shown() == []
    send(tmp_path, [*begun, again, line(20, win_rate=0.0)], line(30, win_rate=0.0))
    first = {"s1/reinforce/win_rate": 0.75, "s2/reinforce/win_rate": 0.25}
    assert shown() == [(10, first)]
    send(tmp_path, [line(10, win_rate=0.0), line(20, win_rate=1.0)], finished=True)
    assert shown() == [(10, first), (20, {"s1/reinforce/win_rate": 1.0})]


def test_a_finished_run_is_sent_once(tmp_path):
    for steps in ((0, 10), (0, 10, 20)):
        lines = [line(step, win_rate=0.5) for step in steps]
        send(tmp_path, lines, finished=True, complete=True)
    assert [step for step, _ in shown()] == [0, 10]  # it is complete, and no service is asked again


def test_mlflow_gives_no_two_names_one_name():
    names = ["a(b)", "a_28_b_29_", "a_28_b)", "a_28(", "a(28_", "_5f_(", "a_b"]
    assert len(set(map(accepted, names))) == len(names)
    assert accepted("s1/win_rate") == "s1/win_rate"


def expected(folder):
    return sorted({each["total_steps"] for each in read_metrics(folder / METRICS_FILE)})


def test_a_killed_run_shows_no_step_twice(tmp_path, monkeypatch):
    run, settings = tmp_path / "run", tiny_settings(**BRIEF)
    with monkeypatch.context() as patch:
        tracked = partial(curriculum.run_curriculum, trackers=["Kept"], project="mine")
        patch.setattr(curriculum, "run_curriculum", tracked)
        killed_run(settings, run, lambda at: at["steps"] >= 30)
    assert len(shown()) < len(expected(run))
    for _ in range(2):
        learn(settings, run, resume=True)
        assert [step for step, _ in shown()] == expected(run)
    name = read_json(run / "trackers.json")["name"]
    assert list(Kept.shown) == [("mine", name)], "the resumed run has its trackers and its project from its config.json"


@pytest.mark.parametrize("tracker", ["RefusesStart", "RefusesLog", "RefusesClose", "Deaf", "wandb"])
def test_a_tracker_that_fails_stops_no_run(tracker, tmp_path, monkeypatch, capsys):
    if tracker == "Deaf":
        monkeypatch.setattr(Sender, "__init__", partialmethod(Sender.__init__, patience=0.0))
    monkeypatch.setitem(sys.modules, "wandb", None)
    run = tmp_path / "run"
    others = ["Kept"] if tracker != "Deaf" else []
    curriculum.run_curriculum(tiny_settings(**BRIEF), run, device="cpu", trackers=[tracker, *others])
    (said,) = [each for each in capsys.readouterr().out.splitlines() if each.startswith("tracker ")]
    assert said.endswith(f"magrounding track {run} --tracker {tracker}")
    assert (run / "report.md").exists()
    assert Sender.lacking(RunFolder(run)) == (tracker,)
    if others:
        assert expected(run) == [step for step, _ in shown()]


def test_a_full_disk_refuses_a_part_of_an_event_too(tmp_path):
    board = TensorBoard(tmp_path / "events")
    board.start("", "", {})
    with full_disk(), pytest.raises(OSError):
        board.log(1, {"a" * 99: 1.0})
    board.close()


def test_a_run_is_sent_afterwards(tmp_path):
    run, settings = tmp_path / "run", tiny_settings(**BRIEF, seeds=(3, 5))
    learn(settings, run, trackers=[])
    assert not list(run.rglob("tensorboard"))
    folder = RunFolder(run)
    assert tracking_of(folder.config(), None, None) == Tracking(())
    for _ in range(2):
        track(folder, Tracking(("Kept",), "later"))
    assert [name[:6] for _, name in Kept.shown] == ["run-3-", "run-5-"]
    for seed, steps in zip((3, 5), Kept.shown.values(), strict=True):
        assert [step for step, _ in steps] == expected(run / f"seed_{seed}")
    with pytest.raises(CheckpointError):
        track(folder, Tracking(("RefusesStart",)))


def test_a_killed_run_is_sent_as_far_as_its_checkpoint_goes(tmp_path):
    run, settings = tmp_path / "run", tiny_settings(**BRIEF, log_every=1, save_every=1000.0)
    killed_run(settings, run, lambda at: True)
    with closing(MetricsLog(SeedFolder(run), (run / METRICS_FILE).stat().st_size, print)) as log:
        log.write(line(1000, win_rate=0.5, seed=0))
    track(RunFolder(run), Tracking(("Kept",)))
    assert [step for step, _ in shown()] == expected(run)[:-2]  # the last that the checkpoint holds may still grow
    os.truncate(run / METRICS_FILE, 200)
    with pytest.raises(CheckpointError):
        track(RunFolder(run), Tracking(("Kept",), "anew"))


def test_what_cannot_be_sent_is_refused(tmp_path):
    def code(*words):
        return CommandLine("magrounding track", words).run(cli_track)

    run = tmp_path / "run"
    assert code(str(run)) == 2
    RunFolder(run).write_config(tiny_settings(**BRIEF).as_dict())
    assert code(str(run)) == 2  # it has measured nothing yet
    assert code(str(run), "--tracker", "tensorbord") == 2
    for content in ({"tracking": {"trackers": ["nothing"]}}, {"tracking": 3}):
        with pytest.raises(CheckpointError):
            tracking_of(content, None, None)
    with pytest.raises(ConfigurationError):
        learn(tiny_settings(**BRIEF), tmp_path / "new", trackers=["tensorbord"])
    assert not (tmp_path / "new").exists()
    (run / "trackers.json").write_text('{"name": "../../else"}')
    with pytest.raises(CheckpointError):
        send(run, [])
