"""Memory of this machine: a request for more is refused in a sentence instead of ending in a killed process."""

from __future__ import annotations

import os

from magrounding.errors import ConfigurationError


def machine_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def require_memory(needed: int, what: str, advice: str) -> None:
    """Raise ConfigurationError, "`what` 9.9 GiB, half of … is 4.4: `advice`", for more bytes than half of memory."""
    there = machine_memory() // 2
    if needed > there:
        raise ConfigurationError(
            f"{what} {needed / 2**30:,.1f} GiB, half of this machine's memory is {there / 2**30:,.1f}: {advice}"
        )
