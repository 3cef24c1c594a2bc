"""RunResults: what a run measured, as rows, read back from its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from magrounding.agents.policy import Policy
from magrounding.brief import brief
from magrounding.envs.published import PublishedResults
from magrounding.errors import CheckpointError
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.experiment.metrics import read_metrics
from magrounding.experiment.plan import Plan
from magrounding.experiment.tables import AFTER, END, TEAM, Row, Summary, data_frame, tidy
from magrounding.registry import load
from magrounding.run_folder import RunFolder
from magrounding.statistics import Statistics
from magrounding.teams.evaluate import PLAYS, TRUE_MANUAL

TEXT = "text"
"""Entry of `config.json`: the source of the sentences that the run read, where its world has one (`EnvSpec.source`)."""


@dataclass(frozen=True)
class RunResults:
    """A run's settings and everything it measured.

    Attributes:
        folder: of the run.
        settings: of the run.
        config: `config.json` as it stands.
        lines: seed → lines of its `metrics.jsonl`.
        baselines: "stage/set" → player → summary.
        published: the papers' numbers.
        others: what other papers reach, each in a dictionary of its own.
    """

    __repr__ = brief

    folder: Path
    settings: RunConfig
    config: dict[str, Any]
    lines: Mapping[int, Sequence[Mapping[str, Any]]]
    baselines: Mapping[str, Mapping[str, Mapping[str, Any]]]
    published: PublishedResults
    others: tuple[PublishedResults, ...] = ()

    @property
    def plan(self) -> Plan:
        return self.settings.resolve()

    @cached_property
    def network(self) -> Policy:
        """One of the run, untrained."""
        return self.settings.make_network()

    @property
    def rows(self) -> Any:
        """Every number that was measured, a row each (`tables.Row`): a pandas.DataFrame, or a dict of NumPy arrays."""
        return data_frame(self.measured)

    @cached_property
    def measured(self) -> list[Row]:
        """All rows: those of the seeds in order, then those of the other players."""
        run = self.folder.name
        own = (row for seed in self.settings.seeds for row in tidy(self.lines[seed], run=run, seed=seed))
        others = (
            {"stage": place.rpartition("/")[0], "set": place.rpartition("/")[2], "player": player, **summary}
            for place, players in self.baselines.items()
            for player, summary in players.items()
        )
        return [*own, *tidy(others, run=run, manual=TRUE_MANUAL)]

    @cached_property
    def evaluated(self) -> Summary:
        """Evaluations after phases by stage, phase, set, way of playing, manual, player and metric."""
        after = (row for row in self.measured if row.when == AFTER)
        return Summary(after, ("stage", "phase", "set", "play", "manual", "player", "metric"))

    @cached_property
    def took(self) -> Summary:
        """What phases took: (stage, phase, metric) → statistics over seeds."""
        return Summary((row for row in self.measured if row.when == END), ("stage", "phase", "metric"))

    @cached_property
    def _curves(self) -> Summary:
        return Summary(self.measured, ("when", "stage", "metric"))

    def after(
        self, stage: str, phase: str, name: str, play: str, metric: str = "", manual: str = TRUE_MANUAL
    ) -> Statistics | None:
        """Statistics of an evaluation after a phase over the seeds that have it, by default of the stage's measure."""
        return self.evaluated(stage, phase, name, play, manual, TEAM, metric or self.plan.stages[stage].measure)

    def baseline(self, stage: str, name: str, player: str) -> Statistics | None:
        """Statistics of another player's games of an evaluation set, of the stage's measure."""
        return self.evaluated(stage, "", name, "", TRUE_MANUAL, player, self.plan.stages[stage].measure)

    def select(self, kind: str, *seeds: int, **equal: Any) -> list[Mapping[str, Any]]:
        """Lines of a kind whose entries equal those given, of these seeds or of all."""
        return [
            line
            for seed in seeds or self.settings.seeds
            for line in self.lines[seed]
            if line["kind"] == kind and all(line.get(name) == value for name, value in equal.items())
        ]

    @cached_property
    def _begun(self) -> dict[tuple[str, str], int]:
        """(seed, stage) → environment steps of the seed before the stage."""
        own = (row for row in reversed(self.measured) if row.player == TEAM)
        return {(row.seed, row.stage): row.total_steps - row.steps for row in own}

    def curve(self, when: str, stage: str, metric: str, **equal: Any) -> dict[int, dict[str, float]]:
        """Steps since a stage began → seed → value, of rows whose other fields equal those given."""
        found: dict[int, dict[str, float]] = {}
        for row in self._curves.rows(when, stage, metric):
            if row.player == TEAM and all(getattr(row, name) == value for name, value in equal.items()):
                found.setdefault(row.total_steps - self._begun[row.seed, stage], {})[row.seed] = row.value
        return dict(sorted(found.items()))

    def reported(self) -> Iterator[tuple[str, str, str]]:
        """(stage, phase, set) of every evaluation after a phase, in order."""
        for segment in self.plan.segments:
            for name in segment.reported:
                yield segment.stage.name, segment.phase.name, name

    def learnt_by(self, stage: str, phase: str) -> str:
        """The way in which the weights after a phase were learnt, and in how many seeds the phase gained nothing."""
        ends = [row.value for row in self.took.rows(stage, phase, "best_steps")]
        stated, kept = self.plan.find(stage, phase).learnt_by, ends.count(0)
        return f"{stated} (no gain in {kept} of {len(ends)} seeds: earlier weights kept)" if kept else stated

    @cached_property
    def better_play(self) -> str:
        """The way of playing that wins more training games over all phases together: a report goes by it.

        Held-out games have no say, or its numbers would be the better of two on the very games they are about. Where a
        run was not evaluated on training games, greedy.
        """
        total: dict[str, float] = dict.fromkeys(PLAYS, 0.0)
        means = {
            (row, play): (self.plan.stages[row[0]].measure, found.mean)
            for row in self.reported()
            for play in PLAYS
            if row[2] == "train" and (found := self.after(*row, play)) is not None
        }
        for (_, play), (measure, mean) in means.items():
            # A score counts no more than a win rate where a run has stages of both.
            total[play] += mean / (max(abs(other) for its, other in means.values() if its == measure) or 1.0)
        return max(PLAYS, key=lambda play: total[play])


def read_results(folder: Path | RunFolder) -> RunResults:
    """Read a run folder; nothing is played for it.

    Raises:
        CheckpointError: no run there, one that has measured nothing yet, or a damaged one.
    """
    results = find_results(folder if isinstance(folder, RunFolder) else RunFolder(folder))
    if results is None:
        raise CheckpointError(f"{folder} holds no measurements: a run does once it has trained, a team never")
    return results


def find_results(folder: RunFolder) -> RunResults | None:
    """Read an opened run folder; None where nothing is measured yet, CheckpointError as of `read_results`."""
    config = folder.config()
    settings = parse_config(config)
    lines = {seed: read_metrics(own.metrics) for seed, own in folder.of_seeds(settings.seeds).items()}
    if not any(lines.values()):
        return None
    own, others, _ = published_tables(settings.resolve())
    return RunResults(folder.path, settings, config, lines, folder.baselines(), own, others)


def published_tables(
    plan: Plan,
) -> tuple[PublishedResults, tuple[PublishedResults, ...], tuple[PublishedResults, ...]]:
    """The papers' own results, those of other papers, and those of lesser models, in games as the run's."""
    plans = plan.entry.evaluation
    sources = plans.published, plans.published_others, plans.published_ablations
    own, others, ablations = (load(each) if each else () for each in sources)
    given, usual = plan.config.env_options, plan.entry.options
    changed = {name for name in plans.other_games if name in given and given[name] != usual[name]}

    def known(results: PublishedResults) -> PublishedResults:
        return {at: found for at, found in results.items() if changed.issubset(plans.sets_of(at[0])[at[1]])}

    return known(own or {}), tuple(map(known, others)), tuple(map(known, ablations))


def over_seeds(runs: Sequence[RunResults]) -> RunResults:
    """Runs that differ in nothing but their seeds, as one run of all these seeds."""
    first = runs[0]
    return replace(
        first,
        settings=replace(first.settings, seeds=tuple(seed for run in runs for seed in run.settings.seeds)),
        lines={seed: lines for run in runs for seed, lines in run.lines.items()},
    )
