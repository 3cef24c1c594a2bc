"""What a source distribution and a wheel hold, as setuptools would pack them."""

import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOT_SHIPPED = (".ci/", ".dockerignore", ".github/", ".gitignore", ".pre-commit-config.yaml")
"""What only a checkout needs."""
LISTS = """
import sys
from setuptools import setup
sys.argv = ["setup.py", "--quiet", "egg_info", "--egg-base", sys.argv[1], "build", "--build-base", sys.argv[1]]
setup()
"""


@pytest.fixture(scope="module")
def tracked():
    """Every file under version control."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return {path for path in done.stdout.splitlines() if (ROOT / path).exists()}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """(files of the source distribution, files of the wheel), both relative to the root."""
    if find_spec("setuptools") is None or int(version("setuptools").partition(".")[0]) < 77:
        pytest.skip("needs setuptools of version 77, as pyproject.toml says")
    folder = tmp_path_factory.mktemp("packed")
    command = [sys.executable, "-c", LISTS, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    (sources,) = folder.glob("*.egg-info/SOURCES.txt")
    library = folder / "lib"
    wheel = {path.relative_to(library).as_posix() for path in library.rglob("*") if path.is_file()}
    return set(map(os.path.normpath, sources.read_text(encoding="utf-8").splitlines())), wheel


def test_the_source_distribution_is_the_whole_project(tracked, packed):
    missing = {path for path in tracked - packed[0] if not path.startswith(NOT_SHIPPED)}
    assert not missing
    assert {"Makefile", "docs/your_game.md", "examples/random_games.py", "tests/conftest.py"} <= packed[0]


def test_the_wheel_is_the_whole_package(tracked, packed):
    assert not {path for path in tracked if path.startswith("magrounding/")} - packed[1]
    assert not {path for path in packed[1] if not path.startswith(("magrounding/", "magrounding_verifiers/"))}
    assert {"magrounding/examples/moves.txt", "magrounding/examples/study.toml", "magrounding/py.typed"} <= packed[1]
