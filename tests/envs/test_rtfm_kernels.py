"""Compiled code on disk must never outlive its sources."""

import ast
import re
import shutil
import subprocess
import sys
from importlib import import_module
from inspect import getmodule, getsource
from pathlib import Path

import pytest
from numba.core.caching import NullCache

from magrounding import envs, jit, seeding
from magrounding.envs import assignment, compiled
from magrounding.envs.rtfm import arrays, kernels

ENVS = Path(envs.__path__[0])
SOURCES = [compiled, assignment, seeding] + [
    import_module(f"magrounding.envs.{path.parent.name}.{path.stem}")
    for package in ("rtfm", "messenger")
    for path in sorted((ENVS / package).glob("[!_]*.py"))
]

RULES = "from numba import njit\n\n@njit\ndef play_games(array):\n    array[0] += {}\n"
GENERATE = """
from collections import namedtuple
from numba import njit
from magrounding.envs.rtfm.dynamics import play_games
Arrays = namedtuple("Arrays", "done manual goal background entities")
salt_of = write_text = None
@njit
def start_games(first, last, rules, tables, games, manual, goal, out):
    play_games(out.done)
"""
OBSERVE = """
from numba import njit
@njit
def show_games(first, last, every, done, slots, rules, background, entities, views):
    pass
"""
COMPILED = """
import zlib
from pathlib import Path
from magrounding import seeding
copy_document = copy_row = document_key = None

"""
PROGRAM = """
import numpy as np
from magrounding.envs.rtfm.generate import Arrays
from magrounding.envs.rtfm.kernels import start_rows
array = np.zeros(1)
arrays = Arrays(*[array] * 5)
start_rows(0, 1, np.zeros(1), None, arrays, arrays, arrays, arrays)
print(array[0], sum(start_rows.stats.cache_hits.values()))
"""


def test_a_change_of_a_rule_is_noticed(tmp_path):
    """Our `kernels.py` around toy rules, in a package of their names: numba alone would go on with the old code."""
    home = tmp_path / "magrounding" / "envs" / "rtfm"
    home.mkdir(parents=True)
    for module in (kernels, arrays):
        shutil.copy(str(module.__file__), home)
    for module in (jit, seeding):
        shutil.copy(str(module.__file__), tmp_path / "magrounding")
    (home / "generate.py").write_text(GENERATE, encoding="utf-8")
    (home / "observe.py").write_text(OBSERVE, encoding="utf-8")
    (home.parent / "compiled.py").write_text(COMPILED + getsource(compiled.checksum), encoding="utf-8")
    (home.parent / "assignment.py").touch()

    def play():
        run = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True)
        return [float(word) for word in run.stdout.split()]

    (home / "dynamics.py").write_text(RULES.format(1), encoding="utf-8")
    assert play() == [1, 0]
    assert play() == [1, 1]  # from the cache
    (home / "dynamics.py").write_text(RULES.format(2), encoding="utf-8")
    assert play() == [2, 0]


def kernels_of(module):
    """What is compiled of a module: functions for Python, and those for kernels alone, which stay plain functions."""
    names = re.findall(r"@(?:njit.*|inner_njit)\ndef (\w+)", Path(module.__file__).read_text(encoding="utf-8"))
    return [vars(module)[name] for name in names]


def imported(module):
    """Name → module of what a module imports from this package: numbers, too, which do not say where they are from."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module.startswith("magrounding")]
    return {alias.name: node.module for node in found for alias in node.names}


@pytest.mark.parametrize("module", SOURCES, ids=lambda module: module.__name__)
def test_everything_that_is_compiled_into_a_kernel_is_a_source(module):
    sources = {source.__name__ for source in SOURCES}
    for kernel in kernels_of(module):
        function = getattr(kernel, "py_func", kernel)
        assert getmodule(function).__name__ in sources
        # A cache of its own would be checked against its own file only.
        assert type(getattr(kernel, "_cache", NullCache())).__name__ == "NullCache", kernel
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            home = getattr(getmodule(getattr(value, "py_func", value)), "__name__", "")
            assert not home.startswith("magrounding") or home in sources, name
            home = imported(module).get(name)
            assert home is None or not {home, f"{home}.{name}"}.isdisjoint(sources), name


@pytest.mark.parametrize("package", ["rtfm", "messenger"])
def test_each_source_counts(package, tmp_path, monkeypatch):
    before = compiled.checksum(package)
    folder = shutil.copytree(ENVS, tmp_path / "envs", ignore=shutil.ignore_patterns("__pycache__", "data"))
    monkeypatch.setattr(compiled, "__file__", str(folder / "compiled.py"))
    assert compiled.checksum(package) == before
    for path in (folder / "compiled.py", folder / "assignment.py", *(folder / package).glob("*.py")):
        source = path.read_bytes()
        path.write_bytes(source + b"\n\n")
        assert compiled.checksum(package) != before
        path.write_bytes(source)
    (folder / "make.py").write_text("")  # of which no kernel is made
    assert compiled.checksum(package) == before
