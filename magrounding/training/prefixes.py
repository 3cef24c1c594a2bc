"""Arrays by name under prefixes, as snapshots have those of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def prefixed(prefix: str, arrays: Mapping[str, T]) -> dict[str, T]:
    """The same with a prefix before each name."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, T]) -> dict[str, T]:
    """Those under a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
