"""Faults of simulators that are repaired and counted, and errors that reach the caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cloudpickle

from magrounding.brief import brief
from magrounding.errors import MagroundingError


class SimulatorError(MagroundingError):
    """A simulator that does not start, or that dies again and again."""


@dataclass(frozen=True)
class Fault:
    """A worker that was replaced, when (seconds since the epoch), why, and the rows of the episodes that were lost."""

    __repr__ = brief

    time: float
    worker: int
    reason: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Failure:
    """Reason for which a worker gave no answer, in one line, and what its simulator raised and where, if it did."""

    reason: str
    error: BaseException | None = None
    trace: str = ""

    @classmethod
    def unpacked(cls, message: bytes) -> Failure:
        """Return the failure whose exception `pack_error` has packed."""
        error, trace = unpack_error(message)
        error.add_note(f"It was raised in a worker process:\n{trace.strip()}")
        return cls(f"{type(error).__name__}: {error}", error, trace.strip())


def pack_error(error: BaseException, trace: str) -> bytes:
    """Pack an exception and its traceback; where the exception cannot travel, a SimulatorError that describes it.

    Arguments and attributes travel, and no `__init__` but Python's own is called again: that of many an exception takes
    other arguments.
    """
    found = dict(vars(error))
    if isinstance(error, ImportError):
        found |= {"msg": error.msg, "name": error.name, "path": error.path}
    try:
        message = cloudpickle.dumps((type(error), error.__reduce__()[1], error.args, found, trace))
        unpack_error(message)
    except Exception:  # whatever an exception holds on to
        described = (f"{type(error).__name__}: {error}",)
        message = cloudpickle.dumps((SimulatorError, described, described, {}, trace))
    return message


def unpack_error(message: bytes) -> tuple[BaseException, str]:
    """Return the exception and the traceback that `pack_error` has packed."""
    kind, made_of, arguments, found, trace = cloudpickle.loads(message)
    error: Any = kind.__new__(kind, *made_of)  # an OSError takes its file name from here
    pythons = next(each for each in kind.__mro__ if each.__module__ == "builtins")
    pythons.__init__(error, *made_of)  # and a UnicodeDecodeError all that it says
    error.args = arguments
    for name, value in found.items():
        setattr(error, name, value)
    return error, trace
