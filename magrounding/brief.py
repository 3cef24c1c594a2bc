"""brief: a repr that fits a few lines of a terminal, of objects whose fields hold arrays, words or settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

MOST = 240
"""Characters of a repr; what is longer ends in "…"."""
_MOST_OF_A_FIELD = 48
_MOST_ENTRIES = 6


def brief(self: Any) -> str:
    """Return the `__repr__` of a dataclass or named tuple, its fields shortened; a class sets `__repr__ = brief`."""
    names: Iterable[str] = [each.name for each in fields(self) if each.repr] if is_dataclass(self) else self._fields
    text = ", ".join(f"{name}={_shown(getattr(self, name, None))}" for name in names)
    return f"{type(self).__name__}({text if len(text) <= MOST else text[: MOST - 1] + '…'})"


def _shown(value: Any) -> str:
    """One value: an array by its kind and shape, a collection of many or long things by how many there are."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        if len(value) > _MOST_ENTRIES or any(map(_is_large, value.values() if isinstance(value, dict) else value)):
            return f"<{len(value)} {'entry' if len(value) == 1 else 'entries'}>"
    elif _is_large(value):
        return f"<{type(value).__name__}>"
    written = repr(value)
    return written if len(written) <= _MOST_OF_A_FIELD else written[: _MOST_OF_A_FIELD - 1] + "…"


def _is_large(value: Any) -> bool:
    """Tell whether a value has a repr of its own that is long, which is not worth making."""
    return is_dataclass(value) or hasattr(value, "shape") or (isinstance(value, Collection) and len(value) > 99)
