"""RunResults: what a run folder says about itself, read back for the report and the curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from magrounding.envs.published import PublishedResults
from magrounding.errors import CheckpointError, choose
from magrounding.experiment.baselines import Summary, read_baselines
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.experiment.metrics import METRICS_FILE, read_metrics
from magrounding.experiment.statistics import Statistics
from magrounding.experiment.statistics import over_seeds as statistics_over_seeds
from magrounding.play.evaluate import PLAYS, TRUE_MANUAL
from magrounding.play.loading import CONFIG_FILE, seed_folder
from magrounding.registry import load
from magrounding.storage import read_json

TEXT = "text"
"""Entry of `config.json`: whose sentences the run read, where its world says (`EnvSpec.source`)."""

_SIZE = "size"
"""The option of worlds whose maps have one."""


@dataclass(frozen=True)
class RunResults:
    """A run's settings and everything it measured.

    Attributes:
        folder: of the run.
        settings: of the run.
        config: `config.json` as it stands.
        lines: seed → lines of its `metrics.jsonl`.
        baselines: "stage/set" → who → summary.
        published: the papers' numbers.
        others: what other papers reach, each in a dictionary of its own.
    """

    folder: Path
    settings: RunConfig
    config: dict[str, Any]
    lines: dict[int, list[dict[str, Any]]]
    baselines: dict[str, dict[str, Summary]]
    published: PublishedResults
    others: tuple[PublishedResults, ...] = ()

    def __repr__(self) -> str:
        lines = sum(map(len, self.lines.values()))
        return f"RunResults({str(self.folder)!r}, {self.settings.env}, {len(self.lines)} seeds, {lines:,} rows)"

    def rows(self, kind: str = "") -> list[dict[str, Any]]:
        """Everything that was measured, a flat dict a row, seed after seed in order; `pandas.DataFrame` takes them.

        Args:
            kind: "train" (a line of the learning curve), "evaluation", "phase" (its end) or "fault"; "": all of them.
        """
        known = ("train", "evaluation", "phase", "fault")
        wanted = known if kind == "" else (choose("kind of row", kind, known),)
        return [dict(line) for seed in self.settings.seeds for line in self.lines[seed] if line["kind"] in wanted]

    def evaluations(self, when: str = "after") -> list[dict[str, Any]]:
        """`rows` of evaluations: those "after" a phase, which reports are about, or those "within" one.

        Their entries are `stage`, `phase`, `set`, `play` (greedy or sampled), `manual` (true, or which wrong one),
        `games`, `win_rate`, `score` and what else `Evaluation.summary` has.
        """
        return [row for row in self.rows("evaluation") if row["when"] == choose("time", when, ("after", "within"))]

    def select(self, kind: str, seed: int, **equal: Any) -> list[dict[str, Any]]:
        """Lines of a kind whose entries equal those given."""
        return [
            line
            for line in self.lines[seed]
            if line["kind"] == kind and all(line.get(name) == value for name, value in equal.items())
        ]

    def start_of(self, seed: int, stage: str) -> int:
        """Environment steps of a seed before a stage began."""
        own = [line for line in self.lines[seed] if line["stage"] == stage]
        return own[0]["total_steps"] - own[0]["steps"] if own else 0

    def reported(self) -> Iterator[tuple[str, str, str]]:
        """(stage, phase, set) of every evaluation after a phase, in order."""
        for stage, phase in self.settings.walk():
            for name in self.settings.evaluation_sets(stage, phase):
                yield stage, phase.name, name

    def final(
        self,
        stage: str,
        phase: str,
        evaluation_set: str,
        play: str,
        quantity: str | None = None,
        manual: str = TRUE_MANUAL,
    ) -> Statistics | None:
        """Statistics of an evaluation after a phase over the seeds that got there and have it; None where none did.

        By default of the run's measure, its win rate or its score.
        """
        where = {"stage": stage, "phase": phase, "set": evaluation_set, "play": play, "manual": manual}
        wanted = quantity or self.settings.measure(stage)
        lines = (self.select("evaluation", seed, when="after", **where) for seed in self.settings.seeds)
        return statistics_over_seeds((line for of_seed in lines for line in of_seed), wanted)

    def learnt_by(self, stage: str, phase: str) -> str:
        """How the weights after a phase came about; where it ended with those that it began with, it taught nothing."""
        ends = [
            line["best_steps"]
            for seed in self.settings.seeds
            for line in self.select("phase", seed, stage=stage, phase=phase)
        ]
        stated, kept = self.settings.learnt_by(stage, phase), ends.count(0)
        if not kept:
            return stated
        return f"{stated} (no gain in {kept} of {len(ends)} seeds: earlier weights kept)"

    @cached_property
    def better_play(self) -> str:
        """The way of playing that wins more training games over all phases together: a report goes by it.

        Held-out games have no say, or its numbers would be the better of two on the very games they are about. Where a
        run was not evaluated on training games, greedy.
        """
        rows = [row for row in self.reported() if row[2] == "train"]
        found = {play: [self.final(*row, play) for row in rows] for play in PLAYS}
        largest: dict[str, float] = {}  # a score counts no more than a win rate where a run has stages of both
        for (stage, *_), *each in zip(rows, *found.values(), strict=True):
            known = [abs(row.mean) for row in each if row is not None]
            measure = self.settings.measure(stage)
            largest[measure] = max([largest.get(measure, 0.0), *known])

        def total(play: str) -> float:
            means = zip(rows, found[play], strict=True)
            return sum(
                reached.mean / (largest[self.settings.measure(stage)] or 1.0)
                for (stage, *_), reached in means
                if reached is not None
            )

        return max(PLAYS, key=total)


def read_results(folder: Path) -> RunResults:
    """Read a run folder; nothing is played for it.

    Raises:
        CheckpointError: no run there, or a damaged one.
    """
    config = read_json(folder / CONFIG_FILE)
    settings = parse_config(config)
    seeds = settings.seeds
    lines = {seed: read_metrics(seed_folder(folder, seed, len(seeds)) / METRICS_FILE) for seed in seeds}
    if not any(lines.values()):
        raise CheckpointError(f"{folder} holds no measurements yet: let its run go on with --resume")
    plan = settings.entry.evaluation
    known: PublishedResults = load(plan.published) if plan.published else {}
    others: Sequence[PublishedResults] = load(plan.published_others) if plan.published_others else ()
    known, *others = (comparable(settings, each) for each in (known, *others))
    return RunResults(folder, settings, config, lines, read_baselines(folder), known, tuple(others))


def comparable(settings: RunConfig, published: PublishedResults) -> PublishedResults:
    """Published results on maps of the size that a run's games have: the papers' own, unless its options set one."""
    if _SIZE not in settings.env_options:
        return published
    own_size = {place for place in published if _SIZE in settings.entry.evaluation.sets_of(place[0])[place[1]]}
    return {place: result for place, result in published.items() if place in own_size}


def over_seeds(runs: Sequence[RunResults]) -> RunResults:
    """Runs that differ in nothing but their seeds, as one run of all these seeds."""
    first = runs[0]
    return replace(
        first,
        settings=replace(first.settings, seeds=tuple(seed for run in runs for seed in run.settings.seeds)),
        lines={seed: lines for run in runs for seed, lines in run.lines.items()},
    )
