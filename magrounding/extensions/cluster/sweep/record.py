"""Sweep: the record of a sweep in its folder, and what its points have reached."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from magrounding.errors import CheckpointError, ConfigurationError, RegistrationError
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.experiment.results import RunResults, find_results
from magrounding.experiment.tables import TEAM, WITHIN
from magrounding.experiment.tables import reached as score_of
from magrounding.extensions.cluster.sweep.axis import Axis, Values, parse_axes
from magrounding.run_folder import OWNER_FILE, RunFolder
from magrounding.statistics import Reached, Statistics
from magrounding.storage import read_json, write_json
from magrounding.teams.evaluate import TRUE_MANUAL

SWEEP_FILE = "sweep.json"
GRID, RANDOM, OPTUNA = "grid", "random", "optuna"


@dataclass
class Point:
    """A point of a sweep.

    Attributes:
        values: path of an option → its value.
        stopped: after so many evaluations in the last stage a search gave it up; 0: it did not.
    """

    values: Values
    stopped: Annotated[int, Meta(ge=0)] = 0


@dataclass
class Sweep:
    """Record of a sweep: its axes, and its points so far; each is a run of its own in the folder.

    Attributes:
        over: the axes, as they were typed.
        search: how points are chosen.
        count: of points that there will be.
        base: options that all points share, as of a run's `config.json`.
        command: the command line that began it.
        points: in the order in which they were chosen.
    """

    over: tuple[str, ...]
    search: Literal["grid", "random", "optuna"]
    count: Annotated[int, Meta(ge=1)]
    base: dict[str, Any]
    command: str = ""
    points: list[Point] = field(default_factory=list)

    @property
    def axes(self) -> tuple[Axis, ...]:
        return parse_axes(self.over)

    @property
    def config(self) -> RunConfig:
        """The options that all points share."""
        return parse_config(self.base)


class SweepFolder:
    """The folder of a sweep: `sweep.json`, and a run's folder for each point."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file, self.owner = path / SWEEP_FILE, path / OWNER_FILE

    def read(self) -> Sweep:
        """The record; CheckpointError where there is none, or a damaged one."""
        try:
            sweep = msgspec.convert(read_json(self.file), Sweep)
            parse_config(sweep.base)
            parse_axes(sweep.over)
        except RegistrationError:
            raise
        except (msgspec.ValidationError, ConfigurationError) as error:
            raise CheckpointError(f"{self.file} is damaged: {error}") from None
        return sweep

    def write(self, sweep: Sweep) -> None:
        write_json(self.file, asdict(sweep), sealed=True)

    def run(self, number: int) -> RunFolder:
        """The folder of a point's run."""
        return RunFolder(self.path / f"point_{number}")

    def results(self, number: int) -> RunResults | None:
        """Results of a point; None where that is nothing yet."""
        run = self.run(number)
        return find_results(run) if run.holds_run else None


def measured(config: RunConfig) -> RunConfig:
    """The same, which is evaluated after its last stage on the set that chooses its weights: a sweep chooses by it."""
    evaluation = config.evaluation
    sets = evaluation.final_sets
    if sets is None or evaluation.selection_set in sets:
        return config
    return replace(config, evaluation=replace(evaluation, final_sets=(evaluation.selection_set, *sets)))


def scores(results: RunResults, name: str = "", play: str = "") -> list[Reached]:
    """The result of each seed after the last stage, on a set and by a way of playing: by default those that choose."""
    key = *_place(results, name, play), TRUE_MANUAL, TEAM, results.plan.segments[-1].stage.measure
    return [score_of(row) for row in results.evaluated.rows(*key)]


def reached(results: RunResults, name: str = "") -> Statistics | None:
    """The statistics of `scores`; None where no seed has any."""
    return results.after(*_place(results, name))


def _place(results: RunResults, name: str, play: str = "") -> tuple[str, str, str, str]:
    """Stage, phase, set and way of playing."""
    last, evaluation = results.plan.segments[-1], results.settings.evaluation
    where, how = name or evaluation.selection_set, play or evaluation.selection_play
    return last.stage.name, last.phase.name, where, how


def evaluations(results: RunResults | None) -> list[float]:
    """Results within the last stage on the set that chooses, as means over seeds, as far as all seeds have them."""
    if results is None:
        return []
    stage, evaluation = results.settings.stages[-1], results.settings.evaluation
    measure = results.plan.stages[stage].measure
    place = {"stage": stage, "set": evaluation.selection_set, "play": evaluation.selection_play, "manual": TRUE_MANUAL}
    of_seeds = (results.select("evaluation", seed, when=WITHIN, **place) for seed in results.settings.seeds)
    return [sum(line[measure] for line in lines) / len(lines) for lines in zip(*of_seeds, strict=False)]
