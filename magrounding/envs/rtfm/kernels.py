"""The three kernels that Python calls, compiled once a machine and again after any change of their sources.

Numba keeps compiled code on disk, and looks for changes in nothing but the file of the cached function itself: a
change of the rules in `dynamics` would go unnoticed. But what a function closes over is part of its key. So these
three, and no others, are cached, and close over a checksum of everything that is compiled into them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from numba import njit

from magrounding import seeding
from magrounding.envs.rtfm import arrays, dynamics, generate, observe, ontology, splits

_SOURCES = (arrays, dynamics, generate, observe, ontology, seeding, splits)


def checksum(modules: Iterable[ModuleType]) -> int:
    """A positive integer that changes with the source of any of these modules."""
    total = 1
    for module in modules:
        total = zlib.crc32(Path(str(module.__file__)).read_bytes(), total)
    return total | 1


def _entry_points(version: int):
    """`start_rows`, `step_rows` and `write_states`; arguments as in `observe`. The condition is always true."""

    @njit(cache=True, nogil=True)
    def start_rows(*arguments):
        if version:
            observe.start_rows(*arguments)

    @njit(cache=True, nogil=True)
    def step_rows(*arguments):
        if version:
            observe.step_rows(*arguments)

    @njit(cache=True, nogil=True)
    def write_states(*arguments):
        if version:
            observe.write_states(*arguments)

    return start_rows, step_rows, write_states


start_rows, step_rows, write_states = _entry_points(checksum(_SOURCES))
