"""run_jobs: what runs when, what is said of it, and what is left behind."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from magrounding.experiment.jobs import forking
from magrounding.experiment.jobs.job import Job, JobsFailed, check_outcomes
from magrounding.experiment.jobs.process import JobProcess
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.progress import Display

ROOT = Path(__file__).parents[3]
PROGRAM = "tests.experiment.jobs.program"


@pytest.fixture(autouse=True)
def jobs_find_this_checkout_and_start_at_once(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(forking, "IMPORTED", ())


def display(**changes):
    return Display(Console(file=io.StringIO(), width=200, **changes))


def printed(shown):
    return shown.console.file.getvalue()


def code(name, program, tmp_path):
    return Job(name, (PROGRAM, program), tmp_path / name)


def test_so_many_run_at_a_time_and_each_in_its_turn(tmp_path):
    """Each notes when it begins and ends: never are there more than two between the two."""
    program = "import sys; f = open(sys.argv[1], 'a'); print('+', file=f, flush=True); print('-', file=f)"
    jobs = [Job(f"job {i}", (PROGRAM, program, str(tmp_path / "notes")), tmp_path / f"{i}") for i in range(6)]
    outcomes = run_jobs(jobs, 2, display())
    assert sorted(outcome.job.name for outcome in outcomes) == [job.name for job in jobs]
    assert [outcome.code for outcome in outcomes] == [0] * 6
    running, most = 0, 0
    for note in (tmp_path / "notes").read_text().split():
        running += 1 if note == "+" else -1
        most = max(most, running)
    assert most <= 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == [*"012345", "notes"]  # no log of what went well


def test_one_that_dies_is_named_with_its_last_lines_and_the_others_go_on(tmp_path):
    dies = "import os; [print('line', i, flush=True) for i in range(9)]; os.kill(os.getpid(), 9)"
    shown = display()
    jobs = [code("dies", dies, tmp_path), code("lives", "print(1)", tmp_path), code("refuses", "exit('no')", tmp_path)]
    outcomes = {outcome.job.name: outcome for outcome in run_jobs(jobs, 1, shown)}
    assert {name: outcome.code for name, outcome in outcomes.items()} == {"dies": -9, "lives": 0, "refuses": 1}
    assert outcomes["dies"].lines == tuple(f"line {i}" for i in range(4, 9))
    assert "dies was ended by SIGKILL\n    line 4\n" in printed(shown)
    assert "refuses ended with exit code 1\n    no\n" in printed(shown)
    assert (tmp_path / "dies" / "job.log").read_text().startswith("line 0\n")
    with pytest.raises(JobsFailed):
        check_outcomes(outcomes.values())


STOPS = """
import os, signal, sys, time
def note(text):
    print(text, file=open(sys.argv[1], "a"), flush=True)
def stop(*_):
    note("saved")
    sys.exit(143)
signal.signal(signal.SIGTERM, stop)
note(f"{os.getpid()} ready")
while True:
    time.sleep(0.05)
"""
DEAF = STOPS.replace("sys.exit(143)", "")


def noting(name, program, tmp_path):
    """A job, and the file in which it notes what it does."""
    notes = tmp_path / f"{name}.notes"
    return Job(name, (PROGRAM, program, str(notes)), tmp_path / name), notes


def when(path, text, act):
    """Do something as soon as a file holds a text."""

    def watch():
        while not (path.exists() and text in path.read_text()):
            time.sleep(0.01)
        act()

    threading.Thread(target=watch, daemon=True).start()


def test_a_signal_stops_all_and_begins_no_other(tmp_path):
    jobs, notes = zip(*(noting(name, STOPS, tmp_path) for name in "012"), strict=True)
    when(notes[0], "ready", lambda: when(notes[1], "ready", lambda: os.kill(os.getpid(), signal.SIGTERM)))
    shown = display()
    with pytest.raises(KeyboardInterrupt) as stopped:
        run_jobs(jobs, 2, shown)
    assert stopped.value.signum == signal.SIGTERM
    assert all("saved" in file.read_text() for file in notes[:2])
    assert not notes[2].exists()
    assert [list(job.folder.iterdir()) for job in jobs[:2]] == [[], []]
    assert "stopping" in printed(shown)
    assert "exit code" not in printed(shown)


def test_a_second_ctrl_c_ends_what_does_not_stop(tmp_path):
    job, notes = noting("deaf", DEAF, tmp_path)

    def ctrl_c():
        os.kill(os.getpid(), signal.SIGINT)

    when(notes, "ready", ctrl_c)
    when(notes, "saved", ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job], 1, display())
    with pytest.raises(ProcessLookupError):
        os.kill(int(notes.read_text().split()[0]), 0)


PARENT = """
import sys
from pathlib import Path
from magrounding.experiment.jobs import forking
from magrounding.experiment.jobs.job import Job
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.progress import Display
forking.IMPORTED = ()
run_jobs([Job("orphan", ("tests.experiment.jobs.program", sys.argv[2]), Path(sys.argv[1]))], 1, Display())
"""
ORPHAN = """
import time
from magrounding.cli.command import run_command
def work():
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
run_command(work, lambda: "the state is saved")
"""


def test_jobs_stop_when_what_started_them_is_killed(tmp_path):
    job = Job("orphan", (), tmp_path / "orphan")
    line = [sys.executable, "-c", PARENT, str(job.folder), ORPHAN]
    parent = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for(job.log, "ready")
    parent.kill()
    wait_for(job.log, "the state is saved")
    assert parent.communicate()[1] == b""  # read to its end: the process that jobs are forked from has it open, too


def test_a_job_goes_on_when_what_it_was_forked_from_is_killed_and_no_other_begins(tmp_path):
    job, notes = noting("goes on", STOPS, tmp_path)
    with forking.ForkServer() as server:
        process = JobProcess(job, server)
        wait_for(notes, "ready")
        server._process.kill()
        server._process.wait()
        with pytest.raises(JobsFailed):
            JobProcess(code("other", "", tmp_path), server)
        process.stop()
        assert process.wait() == 143
    assert "saved" in notes.read_text()


def wait_for(path, text):
    while not (path.exists() and text in path.read_text()):
        time.sleep(0.01)
