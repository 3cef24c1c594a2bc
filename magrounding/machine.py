"""This machine: its processor and its memory; a request for more is refused instead of ending in a killed process."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from magrounding.errors import ConfigurationError


def processor() -> str:
    """The name of this machine's processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


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
