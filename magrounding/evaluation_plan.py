"""EvaluationPlan: the games of an environment in which agents are evaluated, and results of papers beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from magrounding.brief import brief
from magrounding.errors import check_choice

_FEWEST = 25
"""Games of which a win rate is known within 10 percentage points, one standard error."""


def by_split(splits: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """An evaluation set for each value of an option `split`, of the same name."""
    return {name: {"split": name} for name in splits}


@dataclass(frozen=True)
class EvaluationPlan:
    """Games in which agents are evaluated, and results of papers beside them.

    Attributes:
        sets: name → the options (split, size) that make it.
        stage_sets: stage → more such sets, which only that stage has (see `sets_of`).
        reading_set: the one on which agents are also given wrong texts; by default "eval", or else the first.
        rules_text: the text that is exchanged between games as a test of reading; "" where there is none.
        max_envs: games that are played at once in an evaluation, at most; more are played one after another. None: no
            limit.
        baseline_share: share of an evaluation's games that a random team and agents with wrong texts play, the first
            ones. Less than 1 where such games last up to the limit of steps, and cost more than all others.
        aliases: set → the set whose games of the same seeds differ from its own in the names of things alone, in text
            and map. A player that does not depend on names plays the two alike, and is evaluated on one of them.
        published: entry point of the papers' results (`envs.published.PublishedResults`).
        published_others: entry point of what other papers reach in it, a tuple of such dictionaries.
        published_ablations: entry point of what the papers say of lesser models, a tuple of such dictionaries.
        other_games: options that, where they are not the default, make other games than the papers': no result of
            theirs stands beside a run with one, but on the sets that say the option themselves.
        note: a sentence for reports, on what their readers would else wonder about.
    """

    __repr__ = brief

    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"train": {}})
    stage_sets: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    reading_set: str = ""
    rules_text: str = ""
    max_envs: int | None = None
    baseline_share: float = 1.0
    aliases: Mapping[str, str] = field(default_factory=dict)
    published: str | None = None
    published_others: str | None = None
    published_ablations: str | None = None
    other_games: tuple[str, ...] = ("size", "manual", "reading", "sight")
    note: str = ""

    def __post_init__(self) -> None:
        usual = "eval" if "eval" in self.sets else next(iter(self.sets), "")
        object.__setattr__(
            self, "reading_set", check_choice("evaluation set", self.reading_set or usual, tuple(self.sets))
        )
        for name in (*self.aliases, *self.aliases.values()):
            check_choice("evaluation set", name, tuple(self.sets))

    def sets_of(self, stage: str) -> dict[str, Mapping[str, Any]]:
        """The evaluation sets of a stage: those that all have, and its own."""
        return {**self.sets, **self.stage_sets.get(stage, {})}

    def held_out_set(self, stage: str = "") -> str:
        """The set of games that a stage keeps from training, the second; its only one where there is no other."""
        return list(self.sets_of(stage))[:2][-1]

    def played_as(self, evaluation_set: str, *, depends_on_names: bool) -> str:
        """The set whose results a player of this one has: its alias, for a player that does not depend on names."""
        return evaluation_set if depends_on_names else self.aliases.get(evaluation_set, evaluation_set)

    def baseline_games(self, games: int) -> int:
        """Return the number of games for random teams and agents with wrong texts; a few in any case."""
        return min(games, max(_FEWEST, round(self.baseline_share * games)))
