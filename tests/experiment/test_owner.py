"""One process owns a run folder, whatever the container, and a killed one owns nothing."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magrounding.errors import CheckpointError
from magrounding.owner import RunOwner
from magrounding.run_folder import OWNER_FILE, RunFolder
from tests.full import in_full

ROOT = Path(__file__).parents[2]


# Six processes take the folder and give it back, three times each; inside, each has to be alone.
TURNS = """
import os, sys
from pathlib import Path
from magrounding.errors import CheckpointError
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder

folder = Path(sys.argv[1])
inside, children = folder / "inside", []
for _ in range(6):
    if child := os.fork():
        children.append(child)
        continue
    turns = 0
    while turns < 3:
        try:
            with RunOwner(RunFolder(folder)):
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
                turns += 1
                inside.unlink()
        except CheckpointError:
            pass
    os._exit(0)
sys.exit(max(os.waitpid(child, 0)[1] for child in children))
"""


def python(code, *arguments, **options):
    line = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(line, env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True, **options)


def record(folder, **changes):
    """An owner file as another process would have left it."""
    content = {"host": os.uname().nodename, "pid": os.getpid(), "since": "2026-01-01 00:00:00+00:00", **changes}
    (folder / OWNER_FILE).write_text(json.dumps(content))


def test_a_killed_owner_owns_nothing(tmp_path):
    """Of another container with the same host name: until it is killed it is seen, though nobody here has its id."""
    code = "import os, sys; os.getpid = lambda: 2**22 + 1\n"
    code += "from magrounding.owner import *; own = RunOwner(RunFolder(Path(sys.argv[1]))).__enter__()\ninput()"
    process = python(code, tmp_path, stdin=subprocess.PIPE)
    while not (tmp_path / OWNER_FILE).exists() or not (tmp_path / OWNER_FILE).read_bytes():
        assert process.poll() is None
        time.sleep(0.01)
    with pytest.raises(CheckpointError, match=str(2**22 + 1)), RunOwner(RunFolder(tmp_path)):
        pass
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the list of processes
    with RunOwner(RunFolder(tmp_path)):
        pass
    process.communicate()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_children_of_an_owner_own_nothing(tmp_path):
    """Whether they give back what they have, or live longer than a killed owner."""
    (go, gone), (end, ended), folder = os.pipe(), os.pipe(), RunFolder(tmp_path)
    if not (owner := os.fork()):
        with RunOwner(folder) as own:
            if not os.fork():  # it leaves as its parent would
                own.__exit__()
                os.write(gone, b"1")
                os.close(ended)
                os.read(end, 1)
                os._exit(0)
            signal.pause()
    os.read(go, 1)
    with pytest.raises(CheckpointError), RunOwner(folder):
        pass
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    with RunOwner(folder):
        pass
    os.close(ended)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("left", ["of this process", "elsewhere", "[]", "\0", ""])
def test_what_a_record_says_decides_nothing(tmp_path, left):
    record(tmp_path, host=left) if " " not in left else record(tmp_path)
    if left in ("[]", "\0", ""):
        (tmp_path / OWNER_FILE).write_text(left)
    with RunOwner(RunFolder(tmp_path)):
        assert json.loads((tmp_path / OWNER_FILE).read_text())["pid"] == os.getpid()
        (tmp_path / OWNER_FILE).write_text(left)
        with pytest.raises(CheckpointError), RunOwner(RunFolder(tmp_path)):
            pass


def test_a_file_system_without_locks_is_warned_of(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.warns(UserWarning, match=OWNER_FILE), RunOwner(RunFolder(tmp_path)):
        assert json.loads((tmp_path / OWNER_FILE).read_text())["pid"] == os.getpid()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_nobody_comes_in_while_another_gives_the_folder_back(tmp_path):
    """Of six processes, the first of which find a dead owner."""
    for _ in range(in_full(4, 1)):
        record(tmp_path)
        assert python(TURNS, tmp_path).wait(60) == 0
        assert not list(tmp_path.iterdir())
