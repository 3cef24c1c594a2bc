"""EvaluationConfig: how often, on which games and how agents are evaluated while a run trains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from magrounding.schema import Count, OneOf, Options

_FEWEST_WITHIN, _FEWEST_AFTER = 100, 200
"""Games of an evaluation at the smallest budget: a win rate is known within 5 and 3.5 points, one standard error."""

CHOSEN_ON_VALID: Mapping[str, Any] = {
    "selection_set": "valid",
    "watched_sets": ("valid",),
    "stage_sets": ("test",),
    "final_sets": ("test",),
}
"""The sets of a world with `train`, `valid` and `test`: `test` chooses nothing."""


@dataclass(frozen=True)
class EvaluationConfig(Options):
    """Frequency, games and ways of evaluations.

    Attributes:
        every: environment steps between evaluations within a phase; None: at its end only.
        selection_games: games of an evaluation within a phase; those on `selection_set` choose its best weights.
        report_games: games of an evaluation after a phase, on each set.
        selection_set: evaluation set that chooses a phase's best weights; never one of the held-out ones.
        selection_play: how they are played there, "sampled" (actions are drawn) or "greedy" (the most likely ones).
        watched_sets: evaluation sets within a phase, and after one that another follows in the same stage.
        stage_sets: after a stage; None: every set of the environment.
        final_sets: after the last stage; None: every set of the environment.
        whole_games: `report_games` before a small budget made them fewer; None where it did not.
        read_always: wrong texts are tried after every phase, not only after the last of the run.
    """

    every: Count | None = None
    selection_games: Count = 500
    report_games: Count = 1000
    selection_set: str = "train"
    selection_play: Annotated[str, OneOf(("greedy", "sampled"))] = "sampled"
    watched_sets: tuple[str, ...] = ("train", "eval")
    stage_sets: tuple[str, ...] | None = ("train", "eval")
    final_sets: tuple[str, ...] | None = None
    whole_games: Count | None = None
    read_always: bool = True

    def with_budget(self, factor: float) -> EvaluationConfig:
        """The same for so many times the environment steps."""
        return self if self.every is None else replace(self, every=max(1, round(factor * self.every)))

    def sparing(self, part: float) -> EvaluationConfig:
        """Evaluations that take about this part of their time: fewer games, more seldom, of fewer sets.

        Wrong texts, and all sets where it was left open which, are for the end of the run.
        """
        within = min(self.selection_games, max(_FEWEST_WITHIN, round(part * self.selection_games)))
        after = min(self.report_games, max(_FEWEST_AFTER, round(part * self.report_games)))
        return replace(
            self,
            every=None if self.every is None else round(self.every / part),
            selection_games=within,
            report_games=after,
            whole_games=self.report_games if after < self.report_games else self.whole_games,
            stage_sets=self.watched_sets if self.stage_sets is None else self.stage_sets,
            read_always=False,
        )
