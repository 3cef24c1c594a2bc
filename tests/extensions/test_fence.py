"""Each extension's folder can be deleted: all else is imported, trains, evaluates and is listed."""

import subprocess
import sys

import pytest

from tests.fence import EXTENSIONS, ROOT, environment, without

USE = """
import pkgutil, sys
from importlib import import_module
import magrounding
from magrounding.cli.main import commands, main

assert magrounding.__file__.startswith(sys.argv[1])
for module in pkgutil.walk_packages(magrounding.__path__, "magrounding."):
    if "extensions." not in module.name and not module.name.endswith("__main__"):
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:  # an optional package
            assert not error.name.startswith("magrounding"), (module.name, error)
for words in (
    ["list"],
    ["train", "--env", "ma_rtfm", "--preset", "demo", "--stages", "s1", "--budget", "0.001", "--out", "run", "--quiet",
     "phases.s1.0.num_envs=8", "evaluation.selection_games=4", "evaluation.report_games=4", "network.hidden=16"],
    ["evaluate", "--pretrained", "ma_rtfm-s1-2agents", "--splits", "eval", "--episodes", "8", "--play", "greedy"],
):
    sys.argv[1:] = words
    assert main() == 0, words
"""


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_without_an_extension_all_else_works(extension, tmp_path):
    tree, place = without(extension, tmp_path / "tree"), tmp_path / "work"
    place.mkdir()
    line = [sys.executable, "-c", USE, str(tree)]
    done = subprocess.run(line, cwd=place, env=environment(tree), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (place / "run" / "report.md").is_file()


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_an_extension_says_what_it_is_and_has_tests(extension):
    assert (ROOT / "magrounding/extensions" / extension / "README.md").is_file()
    assert list((ROOT / "tests/extensions" / extension).rglob("test_*.py"))
