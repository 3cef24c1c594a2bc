"""Copies of the planner's library, of which every engine needs one of its own: used again, and never unloaded.

The copies of a process share a list of what they register. Unloading one would leave entries in that list which point
to nothing, and the next copy to be loaded would crash the process.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_IDLE: list[Any] = []


def reusing(load: Callable[[], Any]) -> Callable[[], Any]:
    """What takes the place of `load`: a copy that no engine uses any more, or else a new one."""
    return lambda: _IDLE.pop() if _IDLE else load()


def lend(library: Any, owner: object) -> weakref.finalize:
    """Let a copy be used again once its owner is gone, or the result is called."""
    release = weakref.finalize(owner, _take_back, library)
    release.atexit = False
    return release


def _take_back(library: Any) -> None:
    library.cleanup()
    _IDLE.append(library)
