"""No worker outlives its parent, however that one ends; and an end that is asked for is clean."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from magrounding.simulators import process, spawner
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import HANG, Marking, Trouble

HEAD = """
import os, signal, sys, threading, time
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import HANG, STOP, Trouble, Walk
"""


def run(code, *arguments):
    """A parent of its own, as a script without a guard of its main part."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def assert_gone(pids, seconds=5.0):
    deadline = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if lives(pid)]


def descriptors():
    return sorted(int(path.name) for path in Path("/proc/self/fd").iterdir())


def read_pids(parent):
    return [int(pid) for pid in parent.stdout.readline().split()]


def test_close_asks_first_and_twice_is_fine(tmp_path):
    vec = vectorize(lambda: Marking(tmp_path), 4, 2)
    pids = vec.pids
    assert all(map(lives, pids))
    vec.close()
    vec.close()
    assert not any(map(lives, pids))
    assert sorted(int(path.name) for path in tmp_path.iterdir()) == sorted(pids)


def test_envs_that_were_made_are_closed_when_another_one_cannot_be(tmp_path):
    class Third(Marking):
        made = 0

        def __init__(self):
            super().__init__(tmp_path)
            Third.made += 1
            if Third.made == 3:
                raise RuntimeError("no third one")

        def close(self):
            (self.folder / str(id(self))).touch()

    with pytest.raises(RuntimeError):
        vectorize(Third, 3)
    assert len(list(tmp_path.iterdir())) == 2


def test_close_kills_who_does_not_listen(monkeypatch):
    monkeypatch.setattr(process, "_CLOSE_SECONDS", 0.3)
    vec = vectorize(Trouble, 2, 2)
    vec.reset(seed=0)
    vec.send([[HANG]], 0)
    pids = vec.pids
    os.kill(pids[1], signal.SIGSTOP)
    start = time.monotonic()
    vec.close()
    assert time.monotonic() - start < 120, "seconds: without the kill it waits for ever"
    assert not any(map(lives, pids))


class Starting(Trouble):
    """Has a process of its own, whose id it shows, and never ends it."""

    def reset(self, *, seed=None, options=None):
        self.child, self.steps = subprocess.Popen(["sleep", "60"]), 0
        return np.array([self.child.pid, 0]), {}


def test_what_a_simulator_has_started_ends_with_its_worker():
    with vectorize(Starting, 1, 1) as vec:
        seen = vec.reset(seed=0)[0]["observation"]
        first = int(seen[0, 0, 0])
        assert lives(first)
        os.kill(vec.pids[0], signal.SIGKILL)
        seen = vec.step([[0]])[0]["observation"]
        assert_gone([first])
        second = int(seen[0, 0, 0])
        assert lives(second)
    assert_gone([second])


def test_no_descriptor_is_left_behind():
    vectorize(Trouble, 2, 2).close()  # the thread that starts processes is there now
    gc.collect()
    files, threads = descriptors(), threading.active_count()
    with vectorize(Trouble, 2, 2) as vec:
        vec.reset(seed=0)
        os.kill(vec.pids[0], signal.SIGKILL)
        vec.step([[0], [0]])
    del vec
    gc.collect()
    assert descriptors() == files
    assert threading.active_count() == threads


def test_an_end_without_close_is_clean():
    parent = run("vec = vectorize(lambda: Walk(), 4, 2); vec.reset(seed=0); print(*vec.pids, flush=True)")
    pids = read_pids(parent)
    out, err = parent.communicate(timeout=600)
    assert (parent.returncode, out, err) == (0, "", "")
    assert len(pids) == 2
    assert_gone(pids, 0)


def test_no_worker_and_no_memory_outlives_a_killed_parent():
    parent = run("""
vec = vectorize(lambda: Trouble(), 6, 3)
vec.reset(seed=0)
print(*vec.pids, flush=True)
vec.send([[0], [HANG], [0]], 0)
os.kill(vec.pids[2], signal.SIGSTOP)
print(flush=True)
time.sleep(60)
""")
    pids = read_pids(parent)
    parent.stdout.readline()
    assert all(map(lives, pids))
    maps = Path(f"/proc/{pids[0]}/maps").read_text().splitlines()
    mapped = [line.split(maxsplit=5)[5] for line in maps if " rw-s " in line]
    parent.kill()
    parent.communicate()
    assert_gone(pids)
    assert mapped
    assert not [path for path in mapped if Path(path).exists()]


def test_workers_outlive_the_thread_that_made_them():
    with_thread = []
    thread = threading.Thread(target=lambda: with_thread.append(vectorize(Trouble, 2, 2)))
    thread.start()
    thread.join()
    (vec,) = with_thread
    with vec:
        time.sleep(0.2)
        assert all(map(lives, vec.pids))
        vec.reset(seed=0)
        vec.step([[0], [0]])
        assert vec.faults == []


def test_control_c_is_the_parents_alone():
    parent = run("""
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs with SIGINT ignored
vec = vectorize(lambda: Trouble(seconds=1.0), 2, 2)
vec.reset(seed=0)
print(*vec.pids, flush=True)
try:
    while True:
        vec.step([[HANG], [HANG]])
except KeyboardInterrupt:
    vec.reset(seed=0)
    vec.step([[0], [0]])
    print("interrupted", len(vec.faults))
""")
    pids = read_pids(parent)
    time.sleep(0.3)
    for pid in (*pids, parent.pid):
        os.kill(pid, signal.SIGINT)
    out, err = parent.communicate(timeout=600)
    assert (parent.returncode, out, err) == (0, "interrupted 0\n", "")
    assert_gone(pids, 0)


STARTED = """
import tempfile
from magrounding.cli.command import run_command
tempfile.tempdir = sys.argv[1]
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup has

def play():
    vec = vectorize(lambda: Trouble(seconds=0.01), 2, 2)
    vec.reset(seed=0)
    print(*vec.pids, flush=True)
    while True:
        vec.step([[HANG], [HANG]])

sys.exit(run_command(play))
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_by_a_signal_leaves_nothing(tmp_path, signum):
    parent = run(STARTED, tmp_path)
    pids = read_pids(parent)
    assert len(list(tmp_path.iterdir())) == 2
    os.kill(parent.pid, signum)
    _, err = parent.communicate(timeout=600)
    assert (parent.returncode, err) == (128 + signum, "stopped\n")
    assert_gone(pids)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_goes_with_the_next(tmp_path, monkeypatch):
    """Folders of others, of those that live, and what only bears such a name, stay."""
    monkeypatch.setattr(spawner.tempfile, "tempdir", str(tmp_path))
    mine = spawner.Scratch()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (tmp_path / f"{spawner._PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{spawner._PREFIX}file").write_text("")
    stays = set(tmp_path.iterdir())
    parent = run(STARTED, tmp_path)
    read_pids(parent)
    (left,) = [each for each in tmp_path.iterdir() if each not in stays][:1]
    (left / "of the simulator").write_text("400 KiB")
    parent.kill()
    parent.communicate()
    assert len(set(tmp_path.iterdir()) - stays) == 2
    nexts = spawner.Scratch()
    assert set(tmp_path.iterdir()) - stays == {nexts.path}
    assert (elsewhere / "kept").exists()
    nexts.remove()
    mine.remove()
    assert set(tmp_path.iterdir()) == stays - {mine.path}


def test_a_fork_of_the_parent_leaves_the_workers_alone():
    parent = run("""
import warnings
warnings.simplefilter("ignore")  # a fork beside threads is what is tested
vec = vectorize(lambda: Trouble(), 2, 2)
vec.reset(seed=0)
if os.fork() == 0:
    vec.close()
    sys.exit()
os.wait()
vec.step([[0], [0]])
print(len(vec.faults))
""")
    out, err = parent.communicate(timeout=600)
    assert (parent.returncode, out, err) == (0, "0\n", "")
