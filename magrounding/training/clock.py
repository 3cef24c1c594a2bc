"""Clock: where the wall time of a run goes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

TRAINING = ("world", "acting", "teaching", "learning")
"""A clock's names for the parts of training."""


@dataclass
class Clock:
    """Seconds of wall time by what they were spent on."""

    spent: dict[str, float] = field(default_factory=dict)

    def add(self, what: str, since: float) -> float:
        """Book the time since `since` and return the present."""
        now = time.perf_counter()
        self.spent[what] = self.spent.get(what, 0.0) + now - since
        return now
