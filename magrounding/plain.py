"""Values as Python and JSON know them: whatever is an integer, a number, a switch or a path to Python is one to us."""

from __future__ import annotations

import os
from numbers import Real
from operator import index
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """The bool, int, float or str that a value stands for, such as one of NumPy's or a Path; in lists and dicts, too.

    Anything else is returned as it is, for checks to refuse. A whole number with a point is no integer.
    """
    if value is None or isinstance(value, bool | str | bytes):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {name: plain(each) for name, each in value.items()}
    try:
        return index(value)
    except TypeError:
        return float(value) if isinstance(value, Real) else value
