"""SIGTERM, SIGHUP and Ctrl-C save a run and say how it goes on, as do schedulers, containers and closed terminals."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors import safe_open

from magrounding import signals
from magrounding.experiment.interrupt import StopRequest
from magrounding.signals import Stopped
from tests.full import in_full

ROOT = Path(__file__).parents[2]

ENDLESS = """
import fcntl, signal, sys, termios
from dataclasses import replace
from magrounding.cli import train
from magrounding.cli.command import CommandLine
from magrounding.experiment.presets import rtfm
from tests.experiment.tiny_runs import TINY, phases_of

if sys.stderr.isatty():
    fcntl.ioctl(2, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup has
evaluation = replace(TINY.evaluation, every=None)
phases = phases_of(10**9)
rtfm.DEMO = replace(TINY, preset="demo", phases=phases, evaluation=evaluation, log_every=1, save_every=1e9)
line = ("--env", "ma_rtfm", "--stages", "s1", "--device", "cpu", "--yes", "--out", sys.argv[1])
sys.exit(CommandLine("magrounding train", line).run(train))
"""
"""A run without an end, that saves nothing of its own accord."""


def start(folder, **files):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ENDLESS, str(folder)]
    return subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **files)


def wait_until_it_learns(run, folder):
    path = folder / "metrics.jsonl"
    while not (path.exists() and path.stat().st_size):
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)


def assert_saved(folder):
    with safe_open(folder / "checkpoint.safetensors", "pt") as file:
        assert '"updates": ' in file.metadata()["record"]
        assert '"updates": 0,' not in file.metadata()["record"]
    assert not (folder / "owner.json").exists()
    assert not list(folder.rglob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGTERM, *in_full([signal.SIGHUP, signal.SIGINT], [])])
def test_a_signal_saves_the_run(tmp_path, signum):
    run = start(tmp_path / "run", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until_it_learns(run, tmp_path / "run")
    run.send_signal(signum)
    _, err = run.communicate(timeout=600)
    again = f"magrounding train --out {tmp_path}/run --resume --device cpu"
    assert (run.returncode, err) == (128 + signum, f"stopped; the state is saved, go on with: {again}\n")
    assert_saved(tmp_path / "run")


@pytest.mark.slow
def test_a_terminal_that_is_closed_saves_the_run(tmp_path):
    """Nothing can be printed any more."""
    ours, theirs = pty.openpty()
    run = start(tmp_path / "run", stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    wait_until_it_learns(run, tmp_path / "run")
    os.close(ours)
    assert run.wait(600) == 128 + signal.SIGHUP
    assert_saved(tmp_path / "run")


@pytest.fixture
def stop():
    before = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGINT, *signals.OTHERS)}
    with StopRequest() as request:
        yield request
    assert all(signal.getsignal(each) is signal.default_int_handler for each in before)
    for each, handler in before.items():
        signal.signal(each, handler)


def send(signum):
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_obeyed_at_once_where_nothing_is_lost(stop, signum):
    with pytest.raises(Stopped) as stopped, stop.immediate():
        send(signum)
    assert stopped.value.signum == signum
    with pytest.raises(KeyboardInterrupt), stop.immediate():
        pytest.fail("it was to end before")


def test_only_a_person_is_in_a_hurry(stop):
    stop.stop()
    send(signal.SIGTERM)
    send(signal.SIGTERM)
    assert stop.requested == signal.SIGTERM
    with pytest.raises(KeyboardInterrupt):
        send(signal.SIGINT)


def test_what_is_ignored_stays_ignored():
    """As by `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequest() as request:
            send(signal.SIGHUP)
            assert not request.requested
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
