"""`cached_njit`: compiled code that is kept on disk wherever there is a place for it; `inner_njit`: what it is made of.

Numba keeps it beside the source or in the user's home, and refuses to decorate where it can write to neither, as in
many containers. Then it goes to a folder of temporary files that only this user can write to, or nowhere.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.extending import register_jitable

inner_njit = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions that only kernels call: compiled with these, without what lets Python call the compiled code.

That is a fifth of the time to compile. Called from Python they run as plain Python: slow, and right.
"""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)`, which also works where numba finds no place for a cache.

    Args:
        options: of `numba.njit`.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no place that can be written to
            folder = _own_folder()
        if folder is None:
            return numba.njit(**options)(function)
        settings: Any = config  # numba makes what it holds of the environment
        before, settings.CACHE_DIR = settings.CACHE_DIR, str(folder)
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:
            return numba.njit(**options)(function)
        finally:
            settings.CACHE_DIR = before

    return decorate


def _own_folder() -> Path | None:
    """A folder for temporary files that only this user can write to; None where there is none.

    Numba unpickles what it finds in a cache, so a folder that other users could write to would run their code.
    """
    if not hasattr(os, "getuid"):
        return None
    try:
        folder = Path(tempfile.gettempdir()) / f"magrounding-numba-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if own else None
