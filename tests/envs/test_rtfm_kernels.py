"""Parts of kernels have no cache of their own; what changes in them is noticed: `tests/test_jit.py`."""

import ast
import re
from importlib import import_module
from inspect import getmodule
from pathlib import Path

import pytest
from numba.core.caching import NullCache

from magrounding import envs, seeding
from magrounding.envs import assignment, compiled

ENVS = Path(envs.__path__[0])
SOURCES = [compiled, assignment, seeding] + [
    import_module(f"magrounding.envs.{path.parent.name}.{path.stem}")
    for package in ("rtfm", "messenger")
    for path in sorted((ENVS / package).glob("[!_]*.py"))
]


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
    sources, imports = {source.__name__ for source in SOURCES}, imported(module)
    for kernel in kernels_of(module):
        function = getattr(kernel, "py_func", kernel)
        assert getmodule(function).__name__ in sources
        # A cache of its own would be checked against its own file only.
        assert type(getattr(kernel, "_cache", NullCache())).__name__ == "NullCache", kernel
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            home = getattr(getmodule(getattr(value, "py_func", value)), "__name__", "")
            assert not home.startswith("magrounding") or home in sources, name
            home = imports.get(name)
            assert home is None or not {home, f"{home}.{name}"}.isdisjoint(sources), name
