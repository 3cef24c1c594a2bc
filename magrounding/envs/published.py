"""Results of papers in an environment, for reports."""

from __future__ import annotations

from typing import NamedTuple


class PublishedResult(NamedTuple):
    """A win rate from a paper, 0 to 1: mean and standard deviation (or None) over its seeds; model and place."""

    mean: float
    std: float | None
    source: str


PublishedResults = dict[tuple[str, str], PublishedResult]
"""(stage, evaluation set) → result."""
