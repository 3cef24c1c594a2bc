"""FieldWriter: writes observations of an env to their places in an arena, and refuses those that do not fit."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from magrounding.simulators.answers import refuse
from magrounding.simulators.spaces import MASK
from magrounding.spec import Field


class FieldWriter:
    """Writer of one field of one agent, whole or not at all.

    What is written is in the field's space: it has the shape, lies within the bounds, and is the number that the env
    gave (but for rounding to the field's kind of float). It takes under a microsecond where the env shows arrays of the
    field's own dtype, as it is called in every step.

    Args:
        field, view: what is written, and where in an arena: [*shape] of the field's dtype.
        low, high: inclusive bounds, for each number or for all.
        env: whose it is.
        trusted: leave out the bounds, of an env that tests hold to them.
    """

    def __init__(
        self, field: Field, view: np.ndarray, low: np.ndarray, high: np.ndarray, env: Any, *, trusted: bool
    ) -> None:
        self.name, self._view, self._env = field.name, view, env
        self._dtype, self._shape = view.dtype, view.shape
        self._low, self._high = _within(low, view, lowest=True), _within(high, view, lowest=False)
        self._blank = np.ones_like(view) if field.name == MASK else np.clip(np.zeros_like(view), self._low, self._high)
        whole = np.iinfo(view.dtype) if view.dtype.kind in "iu" else None
        unbounded = whole is not None and (self._low == whole.min).all() and (self._high == whole.max).all()
        self._free = trusted or bool(unbounded)
        self._fits = np.zeros((2, *view.shape), np.bool_)
        self._above, self._below = self._fits[0:1].reshape(view.shape), self._fits[1:2].reshape(view.shape)
        self._all_fit = np.ones_like(self._fits).tobytes()

    def write(self, value: Any) -> None:
        """Write a value that the env shows; ConfigurationError, and nothing is written, where it does not fit."""
        plain = type(value) is np.ndarray or isinstance(value, np.generic)
        if not plain or value.dtype != self._dtype or value.shape != self._shape:
            value = converted(value, self._view, repr(self.name), self._env)
        if not self._free:
            np.less_equal(self._low, value, self._above)
            np.less_equal(value, self._high, self._below)
            if self._fits.tobytes() != self._all_fit:  # far faster than `all()`, which most steps would wait for
                self._refuse(np.asarray(value))
        self._view[...] = value

    def clear(self) -> None:
        """Write the placeholder of a missing value: every action for a mask, else the number next to 0."""
        self._view[...] = self._blank

    def _refuse(self, value: np.ndarray) -> None:
        wrong = ~self._fits.all(0)
        low, high = (np.broadcast_to(bound, value.shape)[wrong][0] for bound in (self._low, self._high))
        refuse(repr(self.name), value[wrong][0], self._env, f"a number from {low} to {high}, as its space says,")


def converted(value: Any, like: np.ndarray, name: str, env: Any, *, reshape: bool = False) -> np.ndarray:
    """Return a value of an env as an array of the shape and dtype of another, with every number unchanged.

    With `reshape` any shape of as many numbers will do. A ConfigurationError, which calls it `name`, for no numbers,
    another shape, or a number that this dtype cannot hold.
    """
    try:
        array = np.asarray(value)
    except Exception:  # lists of different lengths, and whatever an object does that is asked to be an array
        array = np.zeros(like.shape, object)
    if array.size == like.size and reshape:
        array = array.reshape(like.shape)
    if array.dtype.kind not in "biuf" or array.shape != like.shape:
        refuse(name, value, env, f"an array of numbers of shape {like.shape}, not {array.dtype} {array.shape},")
    if array.dtype == like.dtype:
        return array
    with np.errstate(all="ignore") if array.dtype.kind == "f" else nullcontext():  # what is lost is another number
        found = array.astype(like.dtype)
        lost = np.isinf(found) & ~np.isinf(array) if like.dtype.kind == "f" else found != array
    if lost.any():
        refuse(name, array[lost][0], env, f"a number that {like.dtype} can hold, as its spec says,")
    return found


def _within(bound: np.ndarray, view: np.ndarray, *, lowest: bool) -> np.ndarray:
    """A bound in the dtype of a view; the dtype's own where it reaches farther, and of integers the next within."""
    dtype, bound = view.dtype, np.asarray(bound)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return bound.astype(dtype)
    kind = np.iinfo(np.uint8 if dtype.kind == "b" else dtype)
    end = (kind.min if lowest else kind.max) if dtype.kind != "b" else not lowest
    if bound.dtype.kind == "f":
        bound = np.ceil(bound) if lowest else np.floor(bound)
    inside = bound > end if lowest else bound < end
    found = np.full(bound.shape, end, dtype)
    found[inside] = bound[inside].astype(dtype)
    return found
