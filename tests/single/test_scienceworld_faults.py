"""ScienceWorld's Java processes die, freeze and are left alone: what is lost is counted, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shutil import which

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.simulators.faults import SimulatorError
from magrounding.single.scienceworld import ScienceWorld

pytest.importorskip("scienceworld", reason="needs the extra `scienceworld`")
if which("java") is None:
    pytest.skip("needs Java, which is not installed", allow_module_level=True)

AGENT = "agent_0"
HEAP = 250
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


def children(pid):
    """Processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[1]) == pid and fields[0] != b"Z":
            found.append(int(path.parent.name))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def gone(pid, seconds):
    """Whether a process ends within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def env():
    env = ScienceWorld("find-plant", heap=HEAP).make_env()
    env.reset(seed=0)
    yield env
    env.close()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_process_is_an_error_and_the_next_reset_starts_another(env, how):
    java = env._simulation.java
    os.kill(java.pid, how)
    start = time.monotonic()
    with pytest.raises(SimulatorError):
        env.step({AGENT: 0})
    assert time.monotonic() - start < 120, "seconds: without a limit of its own it waits for ever"
    assert java.has_ended
    assert env.agents == []
    first, _ = env.reset(seed=1)
    assert env._simulation.java.pid != java.pid
    np.testing.assert_equal(ScienceWorld("find-plant", heap=HEAP).make_env().reset(seed=1)[0], first)


def test_a_lost_process_is_an_error_in_all_its_games(env):
    other = ScienceWorld("find-animal", heap=HEAP).make_env()
    other.reset(seed=0)
    env._simulation.java.end()
    env.reset(seed=1)  # starts another process, in which the other game is not
    with pytest.raises(SimulatorError):
        other.step({AGENT: 0})
    assert other.agents == []
    other.reset(seed=1)
    assert other._simulation.java is env._simulation.java
    other.close()


def test_without_java_the_line_to_type_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(ConfigurationError):
        mg.make("scienceworld")


@LINUX
def test_java_ends_with_its_last_game():
    one = ScienceWorld("find-plant", heap=HEAP).make_env()
    one.reset(seed=0)
    other = ScienceWorld("find-animal", heap=HEAP).make_env()
    other.reset(seed=0)
    pid = one._simulation.java.pid
    assert other._simulation.java.pid == pid, "one process for all games"
    one.close()
    assert alive(pid)
    other.close()
    assert gone(pid, 5)


PLAY = f"""
import signal
import sys
from magrounding.single.scienceworld import ScienceWorld
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background of a shell ignores it
env = ScienceWorld("find-plant", heap={HEAP}).make_env()
env.reset(seed=0)
print(env._simulation.java.pid, flush=True)
while True:
    if not env.agents:
        env.reset()
    env.step({{"agent_0": 3000}} if "idle" in sys.argv else {{"agent_0": env._now.actions.index("wait1")}})
"""


@LINUX
@pytest.mark.parametrize(
    ("how", "frozen"),
    [(signal.SIGKILL, False), (signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGKILL, True)],
)
def test_java_ends_with_python_however_that_ends(how, frozen):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PLAY, *(["idle"] if frozen else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as python:
        pid = int(python.stdout.readline())
        if frozen:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        python.send_signal(how)
        try:
            python.wait(30)
        finally:
            python.kill()
        assert gone(pid, 60), "no Java is left"


@LINUX
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_times_in_a_run_a_worker_loses_its_java():
    struck = []
    with mg.make_vec("scienceworld", 4, workers=2, task="find-plant", heap=HEAP, max_cycles=5) as vec:
        observation, _ = vec.reset(seed=0)
        undisturbed = mg.make_vec("scienceworld", 4, task="find-plant", heap=HEAP, max_cycles=5)
        undisturbed.reset(seed=0)
        same = 0
        for step in range(30):
            if step % 3 == 2:
                (java,) = children(vec.pids[0])
                struck.append(signal.SIGKILL if len(struck) % 2 else signal.SIGSTOP)
                os.kill(java, struck[-1])
            rows = observation["choices"][:, 0, :, 0] == vec.spec.vocabulary["wait1"]
            actions = rows.argmax(1)[:, None]
            observation, _, _, _, info = vec.step(actions)
            assert info["fault"].tolist() == [step % 3 == 2, False] * 2
            other = undisturbed.step(actions)[0]
            same += all(np.array_equal(observation[name][[1, 3]], other[name][[1, 3]]) for name in other)
        undisturbed.close()
        assert same == 30, "the other worker's games go on as if nothing had happened"
        assert len(vec.faults) == len(struck) == 10
        assert {fault.rows for fault in vec.faults} == {(0, 2)}
        assert sum("SIGKILL" in fault.reason for fault in vec.faults) == 5
        assert sum("frozen" in fault.reason for fault in vec.faults) == 5
        javas = [java for pid in vec.pids for java in children(pid)]
        assert len(javas) == 2
    assert all(gone(java, 5) for java in javas)
