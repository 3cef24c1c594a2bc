"""The package alfworld and TextWorld's engine, imported where they are used and without their side effects."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from magrounding.errors import MissingExtra

_FOLDER = "ALFWORLD_DATA"


@contextmanager
def untouched() -> Iterator[None]:
    """Keep `sys.argv`, `sys.stdout` and the environment variable of the package's data as they are.

    The translator of PDDL writes to the first two while it works, and the package sets the third when imported.
    """
    argv, stdout, folder = sys.argv, sys.stdout, os.environ.get(_FOLDER)
    try:
        yield
    finally:
        sys.argv, sys.stdout = argv, stdout
        if folder is None:
            os.environ.pop(_FOLDER, None)


def require() -> None:
    """Raise MissingExtra, with the line to type, where the package or its planner is not installed."""
    try:
        engine()
        part("info")
    except ImportError as error:
        compiled = "" if shutil.which("cmake") else " (pip compiles its planner: first apt install cmake g++)"
        raise MissingExtra(f"ALFWorld{compiled}", "alfworld") from error


@lru_cache(maxsize=1)
def engine() -> ModuleType:
    """Import `pddl`, games on TextWorld's planner; ImportError where that is not installed."""
    with untouched():
        import_module("fast_downward.interface")
        # Its options are read from the command line on import.
        sys.argv = ["translate.py", "domain", "task"]
        import_module("fast_downward.translate.options")
        return import_module("magrounding.single.alfworld.pddl")


def part(name: str) -> Any:
    """A module of the package, such as `gen.goal_library`."""
    with untouched():
        return import_module(f"alfworld.{name}")


@lru_cache(maxsize=1)
def rules() -> tuple[str, str]:
    """Return the rules of the world in PDDL, and its text grammar, in which the task is still unknown."""
    info = part("info")
    return Path(info.ALFRED_PDDL_PATH).read_text("utf-8"), Path(info.ALFRED_TWL2_PATH).read_text("utf-8")
