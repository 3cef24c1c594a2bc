"""Compiled code on disk must never outlive its sources."""

import ast
import re
import shutil
import subprocess
import sys
from inspect import getmodule, getsource
from pathlib import Path

import pytest
from numba.core.caching import NullCache

from magrounding import jit
from magrounding.envs import compiled
from magrounding.envs.rtfm import kernels

RULES = "from numba import njit\n\n@njit\ndef add(array):\n    array[0] += {}\n"
STEPS = """
from numba import njit
from magrounding.envs.rtfm.dynamics import add
@njit
def start_rows(first, last, slots, rules, tables, games, views, out):
    add(out)
"""
COMPILED = "from __future__ import annotations\n\nimport zlib\nfrom pathlib import Path\n\n\n"
PROGRAM = """
import numpy as np
from magrounding.envs.rtfm.kernels import start_rows
array = np.zeros(1)
start_rows(0, 1, None, None, None, None, None, array)
print(array[0], sum(start_rows.stats.cache_hits.values()))
"""


def test_a_change_of_a_rule_is_noticed(tmp_path):
    """Our `kernels.py` around toy rules, in a package of their names: numba alone would go on with the old code."""
    home = tmp_path / "magrounding" / "envs" / "rtfm"
    home.mkdir(parents=True)
    for module in kernels._SOURCES:
        (tmp_path / (module.__name__.replace(".", "/") + ".py")).touch()
    shutil.copy(str(kernels.__file__), home)
    shutil.copy(str(jit.__file__), tmp_path / "magrounding")
    (home / "steps.py").write_text(STEPS, encoding="utf-8")
    (home.parent / "compiled.py").write_text(COMPILED + getsource(compiled.checksum), encoding="utf-8")

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


@pytest.mark.parametrize("module", kernels._SOURCES, ids=lambda module: module.__name__)
def test_everything_that_is_compiled_into_a_kernel_is_a_source(module):
    sources = {source.__name__ for source in kernels._SOURCES}
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


def test_each_source_counts(tmp_path):
    before = compiled.checksum(kernels._SOURCES)
    copies = []
    for module in kernels._SOURCES:
        path = tmp_path / Path(str(module.__file__)).name
        path.write_bytes(Path(str(module.__file__)).read_bytes())
        copies.append(type(sys)(module.__name__))
        copies[-1].__file__ = str(path)
    assert compiled.checksum(copies) == before
    for copy in copies:
        path = Path(copy.__file__)
        source = path.read_bytes()
        path.write_bytes(source + b"\n\n")
        assert compiled.checksum(copies) != before
        path.write_bytes(source)
