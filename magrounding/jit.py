"""Compilation of kernels: `cached_njit`, `inner_njit` for their parts; and faster calls: `FixedTypes`.

Compiled code is kept on disk wherever there is a place for it. Numba keeps it beside the source or in the user's home,
and refuses to decorate where it can write to neither, as in many containers. Then it goes to a folder of temporary
files that only this user can write to, or nowhere.
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
from numba.core.dispatcher import Dispatcher
from numba.extending import register_jitable

inner_njit = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions that only kernels call: compiled with these, without what lets Python call the compiled code.

That is a fifth of the time to compile. Called from Python they run as plain Python: slow, and right.
"""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)`, by default not callable from C; works without a place for a cache, too."""
    options = {"no_cfunc_wrapper": True, **options}

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


class FixedTypes:
    """A kernel of `cached_njit` for one caller, whose arguments have the same types in every call.

    Numba looks at the types of all arguments in each call to choose what it has compiled for them: 8 of the 12 µs that
    one game's step takes, with its fifty arrays. Here the first call chooses. Later arguments are trusted: arrays of
    another type, layout or number of axes would be read as what they are not.

    Args:
        kernel: what `cached_njit` made of a function of positional arguments, none of them `*arguments`.
    """

    def __init__(self, kernel: Callable[..., None]) -> None:
        self._kernel = kernel
        self._compiled: Callable[..., None] | None = None

    def __call__(self, *arguments: Any) -> None:
        if self._compiled is not None:
            self._compiled(*arguments)
            return
        self._kernel(*arguments)
        if isinstance(self._kernel, Dispatcher):  # and not Python, with NUMBA_DISABLE_JIT=1
            self._compiled = self._kernel.get_overload(tuple(map(self._kernel.typeof_pyval, arguments)))


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
