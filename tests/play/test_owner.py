"""One process owns a run folder; a killed one owns nothing, and what cannot be checked is said."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from magrounding.errors import CheckpointError
from magrounding.play.owner import Process, RunOwner
from magrounding.play.run_folder import OWNER_FILE, RunFolder
from magrounding.storage import SEAL, digest

ROOT = Path(__file__).parents[2]

# Six processes begin at one moment; each writes a line where it got the folder, and ends without giving it back.
RACE = """
import os, sys, time
from pathlib import Path
from magrounding.errors import CheckpointError
from magrounding.play.owner import RunOwner
from magrounding.play.run_folder import RunFolder

folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
for done in range(rounds):
    ready, go = os.pipe()
    over, end = os.pipe()
    children = []
    for _ in range(6):
        if child := os.fork():
            children.append(child)
            continue
        os.close(go), os.close(end)
        os.read(ready, 1)
        try:
            RunOwner(RunFolder(folder)).__enter__()
            os.write(1, b"owned\\n")
        except CheckpointError as error:
            os.write(1, b"running\\n" if "is running" in str(error) else b"failed\\n")
        os.read(over, 1)
        os._exit(0)
    os.close(ready), os.close(over), os.close(go)
    while len(Path("/dev/fd/1").resolve().read_text().split()) < 6 * (done + 1):
        time.sleep(0.001)
    os.close(end)
    for child in children:
        os.waitpid(child, 0)
    print(flush=True)
"""

# Six processes take the folder and give it back, five times each; inside, each has to be alone.
TURNS = """
import os, sys
from pathlib import Path
from magrounding.errors import CheckpointError
from magrounding.play.owner import RunOwner
from magrounding.play.run_folder import RunFolder

folder = Path(sys.argv[1])
inside, children = folder / "inside", []
for _ in range(6):
    if child := os.fork():
        children.append(child)
        continue
    turns = 0
    while turns < 5:
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
    content = {**vars(Process.this()), **changes}
    (folder / OWNER_FILE).write_text(json.dumps({**content, SEAL: digest(content)}))


def test_a_second_owner_learns_who_the_first_is(tmp_path):
    with RunOwner(RunFolder(tmp_path / "run")):
        with pytest.raises(CheckpointError) as refused, RunOwner(RunFolder(tmp_path / "run")):
            pass
        told = str(refused.value)
        host = re.escape(os.uname().nodename)
        assert re.search(rf"is running \(process {os.getpid()} on {host}, since 20\d\d-", told)
        assert "--resume" not in told
    assert not list((tmp_path / "run").iterdir())
    with RunOwner(RunFolder(tmp_path / "run")):  # given back
        pass


def test_a_killed_owner_owns_nothing(tmp_path):
    code = (
        "import sys; from magrounding.play.owner import *; RunOwner(RunFolder(Path(sys.argv[1]))).__enter__()\ninput()"
    )
    process = python(code, tmp_path, stdin=subprocess.PIPE)
    while not (tmp_path / OWNER_FILE).exists() or not (tmp_path / OWNER_FILE).read_bytes():
        assert process.poll() is None
        time.sleep(0.01)
    with pytest.raises(CheckpointError, match=f"process {process.pid} on"), RunOwner(RunFolder(tmp_path)):
        pass
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the list of processes
    with RunOwner(RunFolder(tmp_path)):
        pass
    process.communicate()
    assert not list(tmp_path.iterdir())


def test_a_process_id_that_was_used_again(tmp_path):
    record(tmp_path, began="another start")
    with RunOwner(RunFolder(tmp_path)):
        assert Process(**{k: v for k, v in json.loads((tmp_path / OWNER_FILE).read_text()).items() if k != SEAL}).alive


def test_an_owner_on_another_host_cannot_be_checked(tmp_path):
    record(tmp_path, host="elsewhere", pid=7)
    complaint = f"belongs to process 7 on elsewhere, since .* if it does not, delete {tmp_path / OWNER_FILE}"
    with pytest.raises(CheckpointError, match=complaint), RunOwner(RunFolder(tmp_path)):
        pass
    (tmp_path / OWNER_FILE).unlink()
    with RunOwner(RunFolder(tmp_path)):
        pass


def test_a_damaged_record_frees_nothing(tmp_path):
    record(tmp_path)
    whole = (tmp_path / OWNER_FILE).read_bytes()
    flipped = [whole[:k] + bytes([whole[k] ^ 1]) + whole[k + 1 :] for k in range(0, len(whole), 5)]
    for damaged in (*flipped, whole[:-9], b"[]"):
        (tmp_path / OWNER_FILE).write_bytes(damaged)
        with (
            pytest.raises(CheckpointError, match="damaged and names no process: delete it"),
            RunOwner(RunFolder(tmp_path)),
        ):
            pass
    (tmp_path / OWNER_FILE).write_bytes(b"")  # killed before it wrote its name: it had nothing else either
    with RunOwner(RunFolder(tmp_path)):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_of_six_processes_that_find_a_dead_owner_one_gets_the_folder(tmp_path):
    record(tmp_path, began="dead")
    with (tmp_path / "told").open("w") as told:
        assert python(RACE, tmp_path, 12, stdout=told).wait(60) == 0
    rounds = (tmp_path / "told").read_text().strip().split("\n\n")
    assert len(rounds) == 12
    assert {tuple(sorted(each.split())) for each in rounds} == {("owned", *["running"] * 5)}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_nobody_comes_in_while_another_gives_the_folder_back(tmp_path):
    assert python(TURNS, tmp_path).wait(60) == 0
    assert not list(tmp_path.iterdir())


def test_what_another_process_took_is_left_to_it(tmp_path):
    """Its own record deleted by a person, and another process in its place."""
    with RunOwner(RunFolder(tmp_path)):
        record(tmp_path, pid=1)
    assert json.loads((tmp_path / OWNER_FILE).read_text())["pid"] == 1
