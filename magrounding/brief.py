"""brief: a repr that fits a few lines of a terminal, of objects whose fields hold arrays, words or settings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from reprlib import Repr
from typing import Any

MOST = 240
"""Characters of a repr; what is longer ends in "…"."""


class _Short(Repr):
    """Short reprs of values, an array's by its kind and shape."""

    def repr_instance(self, x: Any, level: int) -> str:
        if hasattr(x, "shape") and hasattr(x, "dtype"):
            return f"{x.dtype}{list(x.shape)}"
        return super().repr_instance(x, level)


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 48
_SHORT.maxlevel = 2


def brief(self: Any) -> str:
    """Return the `__repr__` of a dataclass or named tuple, its fields shortened; a class sets `__repr__ = brief`."""
    names = [each.name for each in fields(self) if each.repr] if is_dataclass(self) else self._fields
    text = ", ".join(f"{name}={_SHORT.repr(getattr(self, name, None))}" for name in names)
    return f"{type(self).__name__}({text if len(text) <= MOST else text[: MOST - 1] + '…'})"
