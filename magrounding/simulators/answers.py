"""Checked reading of an env's results: numbers, truth values, keys; one sentence for anything else."""

from __future__ import annotations

import reprlib
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from magrounding.errors import ConfigurationError

_MOST = float(np.finfo(np.float32).max)
"""Largest reward and score: they are shown as float32."""
_SHOWN = 200
"""Characters of a wrong answer in an error."""
_KEYS = np.iinfo(np.int64)


def refuse(what: str, value: Any, env: Any, expected: str) -> NoReturn:
    """Raise a ConfigurationError: what an env has given, and what was expected of it."""
    name = type(getattr(env, "unwrapped", env)).__name__  # its own class, not that of a wrapper
    try:
        shown = textwrap.shorten(reprlib.repr(value), _SHOWN)
    except ValueError:  # Python prints no integer of thousands of digits
        shown = f"of type {type(value).__name__} and too long to show"
    raise ConfigurationError(f"{what} of {name} is {shown}: {expected} was expected")


def parts_of(result: Any, names: Sequence[str], call: str, env: Any) -> Sequence[Any]:
    """Return the results of `reset` or `step` of an env; ConfigurationError where they are not as many as `names`."""
    if not isinstance(result, tuple | list) or len(result) != len(names):
        refuse(f"the result of {call}()", result, env, f"a tuple of {len(names)} ({', '.join(names)})")
    return result


def number(value: Any, what: str, env: Any) -> float:
    """Return one finite number; an array of one is its number. ConfigurationError for anything else."""
    found = float(value) if isinstance(value, float | np.floating) else _scalar(value)
    if found is None or not -_MOST <= found <= _MOST:  # NaN is not
        refuse(what, value, env, "one finite number in the range of float32")
    return found


def flag(value: Any, what: str, env: Any) -> bool:
    """Return one truth value: True or False, 1 or 0, or an array of one. ConfigurationError for anything else."""
    if value is True or value is False:
        return value
    found = _scalar(value)
    if found not in (0, 1):
        refuse(what, value, env, "True or False")
    return bool(found)


def key(value: Any, what: str, env: Any) -> int:
    """Return one integer that int64 can hold; ConfigurationError for anything else."""
    try:
        array = np.asarray(value)
        whole = int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None
    except Exception:  # whatever an object does that is asked to be an array
        whole = None
    if whole is None or not _KEYS.min <= whole <= _KEYS.max:
        refuse(what, value, env, "an integer of 64 bits")
    return whole


def _scalar(value: Any) -> float | None:
    """Return a value as one number; None where it is none, or several."""
    try:
        array = np.asarray(value)
        item: Any = array.item() if array.size == 1 and array.dtype.kind in "biufO" else None
        return float(item) if hasattr(type(item), "__float__") else None
    except Exception:  # too large, or whatever an object does that is asked to be an array
        return None
