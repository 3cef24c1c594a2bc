"""Compiled code finds a place on disk, or does without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import magrounding
from tests.forked import ROOT, Forked

PLAY = """
import magrounding as mg
from magrounding.texts import content_keys
import numpy as np
keys = content_keys({"manual": np.arange(6, dtype=np.int16).reshape(2, 3)})
assert len(set(keys.tolist())) == 2
env = mg.make("ma_rtfm")  # its kernels are prepared; to compile them as well would take a minute
print(mg.__file__)
"""


@pytest.fixture
def sealed(tmp_path):
    """A copy of the package in which numba can write nowhere, and the surroundings of a process that uses it.

    Permissions do not bind root, so files stand where numba would make its folders.
    """
    package = tmp_path / "site" / "magrounding"
    shutil.copytree(
        Path(magrounding.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.safetensors")
    )
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    home = tmp_path / "home"
    home.write_text("")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    taken = ("NUMBA_", "XDG_", "PYTHON", "COVERAGE")
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
    surroundings |= {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": str(package.parent)}
    surroundings["PYTHONDONTWRITEBYTECODE"] = "1"
    return surroundings, temporary / f"magrounding-numba-{os.getuid()}"


def run(code, surroundings):
    return subprocess.run(
        [sys.executable, "-c", code], env=surroundings, cwd="/", capture_output=True, text=True, timeout=600
    )


def test_games_are_made_where_package_and_home_cannot_be_written_to(sealed):
    surroundings, folder = sealed
    done = run(PLAY, surroundings)
    assert done.returncode == 0, done.stderr
    assert surroundings["PYTHONPATH"] in done.stdout
    assert list(folder.rglob("*.nbi"))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_to_is_not_trusted(sealed):
    surroundings, folder = sealed
    folder.mkdir()
    folder.chmod(0o777)
    done = run(PLAY.partition("env =")[0], surroundings)
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir())


OTHER = """
from enum import IntEnum
from typing import NamedTuple
import numpy as np
from magrounding.jit import inner_njit
class Kind(IntEnum):
    ONE = 1
class Pair(NamedTuple):
    first: int
    second: int
NUMBER, TABLE = 3, np.array([5, 6])
@inner_njit
def part(number):
    return number + NUMBER
"""
KERNEL = """
from toy import other
from toy.other import Kind, TABLE, part
from magrounding.jit import cached_njit
@cached_njit()
def kernel(pair):
    return pair.first, part(0), TABLE[0], other.NUMBER, Kind.ONE + 0
"""
CALL = (
    "from toy.other import Pair; from toy.kernel import kernel; "
    "print(*kernel(Pair(1, 2)), sum(kernel.stats.cache_hits.values()))"
)

FULL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_change_of_another_file_is_noticed_and_a_cache_never_in_the_way(tmp_path):
    """Numba itself looks at the file of the kernel alone, and trusts disk and cache."""
    package = tmp_path / "toy"
    package.mkdir()
    (package / "kernel.py").write_text(KERNEL)
    surroundings = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"}

    def call(old, new, before=""):
        (package / "other.py").write_text(OTHER.replace(old, new))
        # what is forked writes to files, of which a full disk takes none
        done = run(before + CALL, surroundings) if before else forked.run("-c", CALL, cwd="/", env=surroundings)
        assert done.returncode == 0, done.stderr
        return list(map(int, done.stdout.split()))

    with Forked(environment=surroundings, imported=["magrounding.jit"]) as forked:
        assert call("", "") == [1, 3, 5, 3, 1, 0]
        assert call("", "") == [1, 3, 5, 3, 1, 1]  # from the cache
        for file in package.rglob("*.nb?"):
            file.write_bytes(b"")  # as a power cut leaves it
        assert call("", "", FULL_DISK) == [1, 3, 5, 3, 1, 0]
        assert [call("", "")[-1] for _ in range(2)] == [0, 1]
        assert call("NUMBER, TABLE = 3", "NUMBER, TABLE = 4") == [1, 4, 5, 4, 1, 0]
        assert call("[5, 6]", "[6, 5]") == [1, 3, 6, 3, 1, 0]
        assert call("number + NUMBER", "number - NUMBER") == [1, -3, 5, 3, 1, 0]
        assert call("ONE = 1", "ONE = 2") == [1, 3, 5, 3, 2, 0]
        assert call("first: int\n    second: int", "second: int\n    first: int") == [2, 3, 5, 3, 1, 0]
