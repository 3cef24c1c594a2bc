"""Results of papers in an environment, for reports."""

from __future__ import annotations

from typing import NamedTuple


class PublishedResult(NamedTuple):
    """A win rate from a paper.

    Attributes:
        mean: over its seeds, 0 to 1.
        std: standard deviation over its seeds; None where it gives none.
        source: model and place.
    """

    mean: float
    std: float | None
    source: str


PublishedResults = dict[tuple[str, str], PublishedResult]
"""(stage, evaluation set) → result."""
