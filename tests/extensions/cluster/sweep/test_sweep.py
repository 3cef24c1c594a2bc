"""Sweeps: points are trained side by side, stopped, gone on with and given up; the table and the figure."""

import os
import signal
import threading
import time
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.jobs.seeds import unfinished
from magrounding.experiment.metrics import MetricsLog
from magrounding.extensions.cluster.cli import sweep as command
from magrounding.extensions.cluster.cli.sweep import at_point
from magrounding.extensions.cluster.sweep import jobs as sweep_jobs
from magrounding.extensions.cluster.sweep.axis import grid, parse_axes
from magrounding.extensions.cluster.sweep.jobs import SweepJobs
from magrounding.extensions.cluster.sweep.record import GRID, OPTUNA, Point, Sweep, SweepFolder, measured
from magrounding.extensions.cluster.sweep.report import measured_points, write_report
from magrounding.progress import Display
from magrounding.run_folder import RunFolder
from magrounding.storage import read_json, write_json
from tests.experiment.tiny_runs import learn, phases_of, quiet, tiny_settings, weights_of
from tests.full import in_full

pytestmark = pytest.mark.usefixtures("jobs_of_one_server")
OVER = ("learner.learning_rate=0.001,0.01", "network.hidden=4,8")
BASE = measured(tiny_settings(stages=("s1",), seeds=(0, 1), phases=phases_of(60), every=30, final_sets=("eval",)))


def sweep_of(over=OVER, base=BASE, **changes):
    points = [Point(values) for values in grid(parse_axes(over))]
    return Sweep(
        **{"over": over, "search": GRID, "count": len(points), "base": base.as_dict(), "points": points} | changes
    )


def begin(settings, run, seeds=(), **changes):
    return learn(settings, run.path, seeds=seeds, **{"threads": 1, "trackers": [], **changes})


def measure(folder, sweep, number, after, within=()):
    """Write down what a point measured: seed → games won of 100 after the phase, and evaluations within it."""
    settings, run = at_point(sweep.config, sweep.points[number].values), folder.run(number)
    run.path.mkdir(exist_ok=True)
    run.write_config(settings.as_dict())
    for seed in settings.seeds:
        own = {"kind": "evaluation", "seed": seed, "stage": "s1", "phase": "reinforce", "games": 100, "play": "sampled"}
        own |= {"steps": 60, "total_steps": 60, "manual": "true"}
        with closing(MetricsLog(run.seed(seed, 2), 0, print)) as log:
            for value in within:
                log.write({**own, "set": "train", "when": "within", "win_rate": value / 100})
            for name in ("train", "eval") if seed in after else ():
                log.write({**own, "set": name, "when": "after", "win_rate": after[seed] / 100})
            if seed in after:
                log.write({**own, "kind": "phase", "best_steps": 60})


def said(capsys, *words):
    code = CommandLine("magrounding sweep", tuple(map(str, words))).run(command)
    return code, capsys.readouterr()


def test_a_point_that_has_begun_and_measured_nothing_is_left_out(tmp_path):
    """As of a run that is stopped while it records its expert: what was measured by others is reported all the same."""
    folder, sweep = SweepFolder(tmp_path), sweep_of(OVER[:1])
    measure(folder, sweep, 0, {0: 50, 1: 60})
    measure(folder, sweep, 1, {})
    assert folder.run(1).seed(0, 2).metrics.read_bytes() == b""
    assert [point.number for point in measured_points(folder, sweep)] == [0]


@pytest.mark.slow
def test_a_sweep_is_stopped_and_goes_on_to_the_same_weights(tmp_path, capsys):
    base = replace(BASE, seeds=in_full((0, 1), (0,)))
    folder, sweep = SweepFolder(tmp_path / "sweep"), sweep_of(OVER[:1], base)
    folder.path.mkdir()
    folder.write(sweep)
    go_on = ("--out", folder.path, "--resume", "--jobs", 2, "--device", "cpu", "--threads", 1)

    def stop_when_saved():
        while not folder.run(1).seed(0, len(base.seeds)).checkpoint.exists():
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop_when_saved, daemon=True).start()
    code, printed = said(capsys, *go_on)
    assert code == 128 + signal.SIGINT
    again = f"magrounding sweep --out {folder.path} --resume --jobs 2 --device cpu --threads 1"
    assert printed.err == f"stopped; the state is saved, go on with: {again}\n"
    assert "| point_0 | 0.001 |" in (folder.path / "sweep.md").read_text()
    code, printed = said(capsys, *go_on)
    assert code == 0, printed
    assert printed.out.endswith(f"report: {folder.path / 'sweep.md'}\n")
    for number, point in enumerate(sweep.points):
        settings, whole = at_point(base, point.values), RunFolder(tmp_path / f"whole_{number}")
        assert not unfinished(settings, folder.run(number))
        begin(settings, whole)
        begin(settings, whole, resume=True, seeds=(0,))
        ours, theirs = (run.seed(0, len(base.seeds)).path for run in (folder.run(number), whole))
        assert weights_of(ours, "s1").equal(weights_of(theirs, "s1"))
    before = {path: path.stat().st_mtime_ns for path in folder.path.glob("*/*/*")}
    assert said(capsys, *go_on)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in folder.path.glob("*/*/*")} == before


class GivesUp:
    """A search that gives point 1 up after its second evaluation, whatever that is."""

    def __init__(self, sweep, known):
        self.points = sweep.points
        self.told = {number: value for number, (value, _) in known.items()}

    def numbers(self):
        return range(len(self.points))

    def ended(self, number, value, values):
        self.told[number] = value

    def gives_up(self, number, values):
        return number == 1 and len(values) >= 2


@pytest.mark.slow
def test_a_point_that_is_given_up_ends_early_and_stays_so(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(sweep_jobs, "OptunaSearch", lambda *what: made.append(GivesUp(*what)) or made[-1])
    over = ("phases.*.0.until.steps=60,100000000",)
    folder, sweep = SweepFolder(tmp_path / "sweep"), sweep_of(over, search=OPTUNA)
    folder.path.mkdir()

    def run(record):
        jobs = SweepJobs(folder, record, partial(at_point, record.config), begin, ["--device", "cpu", "--threads", "1"])
        return run_jobs(jobs.jobs(), 2, quiet(), ended=jobs.ended, stops=jobs.stops)

    outcomes = run(sweep)
    assert not any(outcome.failed for outcome in outcomes)
    assert {outcome.job.name for outcome in outcomes if outcome.stopped} <= {"point 1, seed 0", "point 1, seed 1"}
    assert sweep.points[1].stopped >= 2
    assert made[-1].told[1] is None
    assert 0 <= made[-1].told[0] <= 1
    again = folder.read()
    assert again.points == sweep.points
    SweepJobs(folder, again, partial(at_point, again.config), begin, [])
    assert made[-1].told == {0: made[0].told[0], 1: None}
    write_report(folder, again)
    text = (folder.path / "sweep.md").read_text()
    assert "| point_1 | 100000000 | – | – | – | " in text
    assert f"given up after {again.points[1].stopped} evaluations" in text
    assert "1 of them were given up" in text


def test_the_table_and_the_figure(tmp_path):
    folder, sweep = SweepFolder(tmp_path), sweep_of(search=OPTUNA)
    write_report(folder, sweep)
    assert not list(tmp_path.iterdir())
    measure(folder, sweep, 0, {0: 20, 1: 40})
    measure(folder, sweep, 1, {0: 60, 1: 70}, within=(10, 50))
    measure(folder, sweep, 2, {}, within=(5, 8))
    measure(folder, sweep, 3, {1: 90})
    sweep.points[2].stopped = 2
    write_report(folder, sweep)
    points = measured_points(folder, sweep)
    assert [point.number for point in points] == [3, 1, 0, 2]
    assert [point.statistics and round(point.statistics.iqm, 6) for point in points] == [0.9, 0.65, 0.3, None]
    assert "| 65.0 % ± 7.1 % | 65.0 % ± 7.1 % | 50.0 % | finished |" in (tmp_path / "sweep.md").read_text()
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ["point_3", "point_1", "point_0", "point_2"]
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_swept_is_refused(tmp_path, capsys):
    out = tmp_path / "sweep"
    begun = ("--env", "rtfm", "--out", out)
    entropy = (*begun, "--over", "learner.entropy=0.1,1")
    for words in (
        begun,
        (*begun, "--over", "learner.entropi=0.1,0.2"),
        (*begun, "--over", "learner.entropy=0.1,much"),
        (*begun, "--over", "learner.entropy=0.01,1e-2"),
        (*begun, "--over", "learner.entropy=1,1.0"),
        (*begun, "--over", f"learner.entropy=1..{10**20}", "--random", 3),
        (*begun, "--over", "learner.entropy=0.1..1"),
        (*entropy, "--over", "learning.entropy=2,3"),
        (*entropy, "--random", 1, "--optuna", 1),
        (*entropy, "--random", 0),
        (*entropy, "--optuna", 10**9),
        ("--out", out, "--resume"),
        ("--resume",),
    ):
        assert said(capsys, *words)[0] == 2
        assert not out.exists()
    folder = SweepFolder(out)
    out.mkdir()
    folder.write(sweep_of())
    resumed = ("--out", out, "--resume")
    for words in (entropy, (*resumed, "env.size=9"), (*resumed, "--optuna", 9)):
        assert said(capsys, *words)[0] == 2
    folder.file.unlink()
    (out / "other").touch()
    assert said(capsys, *entropy)[0] == 2
    assert not (out / "point_0").exists()


def test_how_far_a_long_check_of_values_is_is_shown(capsys, monkeypatch):
    monkeypatch.setattr(command, "check_run", lambda settings: None)
    values = ",".join(f"{k}e-5" for k in range(1, 121))
    command.check_values(BASE, parse_axes([f"learner.entropy={values}"]), Display())
    assert "100 of 120" in capsys.readouterr().out


def test_a_damaged_record_is_refused(tmp_path):
    folder = SweepFolder(tmp_path)
    for change in ({"search": "luck"}, {"count": 0}, {"points": [{"values": 3}]}, {"over": ["a"]}, {"base": {}}):
        folder.write(sweep_of())
        content = {**read_json(folder.file), **change}
        folder.file.unlink()
        write_json(folder.file, content, sealed=True)
        with pytest.raises(CheckpointError):
            folder.read()
