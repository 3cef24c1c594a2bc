"""Compilation of kernels: `cached_njit`, `inner_njit` for their parts; and faster calls: `FixedTypes`.

Compiled code is kept on disk wherever there is a place for it. Numba keeps it beside the source or in the user's home,
and refuses to decorate where it can write to neither, as in many containers. Then it goes to a folder of temporary
files that only this user can write to, or nowhere.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.extending import register_jitable

from magrounding.storage import own_temporary

inner_njit = register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions that only kernels call: compiled with these, without what lets Python call the compiled code.

That is a fifth of the time to compile. Called from Python they run as plain Python: slow, and right.
"""


class _Cache(FunctionCache):
    """Numba's cache of one kernel on disk, whose entries also depend on all that is compiled into the kernel.

    Numba looks for changes in nothing but the file of the kernel: it would go on with code of functions, constants and
    fields of tuples that another file has changed since.
    """

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (*super()._index_key(sig, codegen), _fingerprint(self._py_func, sig))

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        """Around reading and keeping a kernel: it is compiled, and the cache begins anew, where this fails.

        A power cut leaves files that are not whole, and unpickling them raises anything; a disk may be full.
        """
        try:
            yield
        except Exception:
            with suppress(OSError):
                self.flush()


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)`, not callable from C; works without a place for a cache, too.

    What a kernel uses of other modules of its package, or of this one, may change: then it is compiled again.
    """
    options["no_cfunc_wrapper"] = True

    def decorate(function: Callable[..., Any]) -> Any:
        made = numba.njit(**options)(function)
        if not isinstance(made, Dispatcher):  # but Python, with NUMBA_DISABLE_JIT=1
            return made
        kernel: Any = made
        settings: Any = config  # numba makes what it holds of the environment
        before = settings.CACHE_DIR
        try:
            kernel._cache = _Cache(function)
        except RuntimeError:  # no place that can be written to
            if (folder := own_temporary("magrounding-numba")) is not None:
                settings.CACHE_DIR = str(folder)
                with suppress(RuntimeError):
                    kernel._cache = _Cache(function)
        finally:
            settings.CACHE_DIR = before
        return kernel

    return decorate


def _fingerprint(function: Any, signature: Any) -> str:
    """A digest of a kernel: of its functions, of their constants, and of the names in the tuples that it takes."""
    ours = {name.partition(".")[0] for name in (__name__, function.__module__)}
    found, seen, left = sha256(), set(), [function, signature]
    while left:
        value = left.pop()
        value = value.py_func if isinstance(value, Dispatcher) else value
        mark: Any = (getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value).__qualname__))
        if isinstance(value, FunctionType):
            if value not in seen and value.__module__.partition(".")[0] in ours:
                seen.add(value)
                codes = [value.__code__]
                for code in codes:  # functions within functions, too
                    codes += [each for each in code.co_consts if isinstance(each, CodeType)]
                    left += [each for each in code.co_consts if not isinstance(each, CodeType)]
                names = [name for code in codes for name in code.co_names]
                used = [value.__globals__[name] for name in names if name in value.__globals__]
                modules = [each for each in used if isinstance(each, ModuleType)]
                left += [vars(each)[name] for each in modules for name in names if name in vars(each)]
                left += [used, value.__defaults__, [cell.cell_contents for cell in value.__closure__ or ()]]
                mark = [(code.co_code, code.co_names, code.co_freevars) for code in codes]
        elif isinstance(value, list | tuple):
            left += value
            mark = len(value)
        elif isinstance(value, np.ndarray):
            mark = value.dtype, value.shape, value.tobytes()
        elif isinstance(value, numba.types.BaseTuple):
            left += getattr(value, "types")  # noqa: B009  numba's types are not annotated
            mark = value, getattr(value, "fields", ())
        elif isinstance(value, type):
            mark = (*mark, getattr(value, "_fields", ()), list(value) if isinstance(value, enum.EnumMeta) else ())
        elif isinstance(value, frozenset):
            mark = sorted(map(repr, value))
        elif isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.dtype | enum.Enum):
            mark = value
        found.update(repr(mark).encode())
    return found.hexdigest()


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

    def __call__(self, *arguments: Any) -> None:
        self._kernel(*arguments)
        if isinstance(self._kernel, Dispatcher):  # the first call; Python with NUMBA_DISABLE_JIT=1 stays as it is
            self._kernel = self._kernel.get_overload(tuple(map(self._kernel.typeof_pyval, arguments)))
