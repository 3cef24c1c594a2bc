"""SweepJobs: the trainings of a sweep, one for each seed of each point; Optuna chooses points by the results so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from magrounding.errors import needed
from magrounding.experiment.config import RunConfig
from magrounding.experiment.jobs.job import Job, Outcome
from magrounding.experiment.jobs.seeds import seed_jobs, unfinished
from magrounding.extensions.cluster.sweep.axis import Axis, Values, new_point
from magrounding.extensions.cluster.sweep.record import OPTUNA, Point, Sweep, SweepFolder, evaluations, reached
from magrounding.run_folder import RunFolder

Found = tuple[float | None, Sequence[float]]
"""What a point has reached: its result, None where it failed or was given up; and its evaluations before."""


class SweepJobs:
    """The jobs of a sweep, for `run_jobs`: those of a point that is finished are left out.

    Args:
        folder: of the sweep, by a path that is the same everywhere.
        sweep: its record, which is written as points are added or given up.
        at: the options of a point.
        begin: writes the folder of a run that is not there yet.
        words: further arguments of `train`.

    Raises:
        MissingExtra: Optuna is to choose, and is not installed.
    """

    def __init__(
        self,
        folder: SweepFolder,
        sweep: Sweep,
        at: Callable[[Values], RunConfig],
        begin: Callable[[RunConfig, RunFolder], object],
        words: Sequence[str],
    ) -> None:
        self._folder, self._sweep, self._begin, self._words = folder, sweep, begin, words
        self._settings_of = cache(lambda number: at(sweep.points[number].values))
        self._point: dict[str, int] = {}  # name of a job → its point
        self._left: dict[int, int] = {}  # point → jobs that have not ended
        self._failed: set[int] = set()
        self._seen: dict[int, tuple[int, ...]] = {}  # point → sizes of its files of metrics at the last look
        self._search: OptunaSearch | None = None
        if sweep.search == OPTUNA:
            ended = filter(self._has_ended, range(len(sweep.points)))
            self._search = OptunaSearch(sweep, {number: self._found(number) for number in ended})

    def jobs(self) -> Iterator[Job]:
        """All jobs that are to be run, each made as it is asked for."""
        numbers = range(len(self._sweep.points)) if self._search is None else self._search.numbers()
        for number in numbers:
            point, run = self._sweep.points[number], self._folder.run(number)
            self._folder.write(self._sweep)
            settings = self._settings_of(number)
            if not run.holds_run:
                self._begin(settings, run)
            jobs = seed_jobs(settings, run, self._words)
            self._left[number] = len(jobs)
            for job in jobs:
                if point.stopped:  # by what its other seeds have reached
                    self._end(number)
                    continue
                named = replace(job, name=f"point {number}, {job.name}")
                self._point[named.name] = number
                yield named

    def ended(self, outcome: Outcome) -> None:
        """Take note of the end of a job."""
        number = self._point[outcome.job.name]
        if outcome.failed:
            self._failed.add(number)
        self._end(number)

    def stops(self, job: Job) -> bool:
        """Return whether a job is to end, as its point is given up; that is written down."""
        number = self._point[job.name]
        point, settings, run = self._sweep.points[number], self._settings_of(number), self._folder.run(number)
        if self._search is None or point.stopped:
            return bool(point.stopped)
        files = (folder.metrics for folder in run.of_seeds(settings.seeds).values())
        sizes = tuple(file.stat().st_size for file in files if file.exists())
        if sizes == self._seen.get(number):
            return False
        self._seen[number] = sizes
        values = evaluations(self._folder.results(number))
        if self._search.gives_up(number, values):
            point.stopped = len(values)
            self._folder.write(self._sweep)
        return bool(point.stopped)

    def _end(self, number: int) -> None:
        """Tell the search where the last job of a point has ended."""
        self._left[number] -= 1
        if not self._left[number] and self._search is not None:
            self._search.ended(number, *self._found(number))

    def _has_ended(self, number: int) -> bool:
        run = self._folder.run(number)
        return bool(self._sweep.points[number].stopped) or (
            run.holds_run and not unfinished(self._settings_of(number), run)
        )

    def _found(self, number: int) -> Found:
        """What a point has reached that has ended: the interquartile mean of its seeds."""
        results = self._folder.results(number)
        lost = number in self._failed or self._sweep.points[number].stopped
        statistics = None if lost or results is None else reached(results)
        return statistics and statistics.iqm, evaluations(results)


class OptunaSearch:
    """Optuna's study of a sweep, repeated from what its points have reached: Optuna keeps no file of its own.

    Its sampler (TPE) chooses points that are likely to be better than those before. Its pruner gives up a point whose
    evaluations so far stay below the median of those before at the same evaluation. Higher results are better. A point
    that was trained already is not trained again: one that is drawn at random takes its place. Each choice depends on
    the results before and on its number alone, so a search that was stopped makes the same ones.

    Args:
        sweep: with its points so far.
        known: number of each point that has ended → what it has reached.

    Raises:
        MissingExtra: Optuna is not installed.
    """

    def __init__(self, sweep: Sweep, known: dict[int, Found]) -> None:
        with needed("--optuna", "sweeps"):
            import optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # a sweep has a display of its own
        self._sweep, self._states = sweep, optuna.trial.TrialState
        self._distributions = {axis.path: _distribution(axis) for axis in sweep.axes}
        self._sampler = partial(optuna.samplers.TPESampler, constant_liar=True)
        self._study = optuna.create_study(direction="maximize", pruner=optuna.pruners.MedianPruner())
        self._trials: dict[int, Any] = {}
        self._reported: dict[int, int] = {}
        self._behind: set[int] = set()
        self._begun = [number for number in range(len(sweep.points)) if number not in known]
        for number, found in sorted(known.items()):
            self._ask(number, sweep.points[number].values)
            self.ended(number, *found)

    def numbers(self) -> Iterator[int]:
        """Points to train, each as there is a place for it; one that is new is added to the sweep."""
        points, axes = self._sweep.points, self._sweep.axes
        for number in self._begun:
            self._ask(number, points[number].values)
            yield number
        while (number := len(points)) < self._sweep.count:
            values, seen = self._ask(number), {tuple(point.values.values()) for point in points}
            if tuple(values.values()) in seen:
                self._study.tell(self._trials[number], state=self._states.FAIL)
                values = new_point(axes, seen, np.random.default_rng(number))
                if values is None:
                    return
                self._ask(number, values)
            points.append(Point(values))
            yield number

    def ended(self, number: int, value: float | None, values: Sequence[float]) -> None:
        """Optuna is told the same of a point that is behind, whether that was seen before its end or not."""
        behind = self.gives_up(number, values) or self._sweep.points[number].stopped
        state = self._states.PRUNED if behind else self._states.FAIL if value is None else self._states.COMPLETE
        self._study.tell(self._trials[number], None if state != self._states.COMPLETE else value, state)

    def gives_up(self, number: int, values: Sequence[float]) -> bool:
        """Return whether a point that runs is not worth going on with, by its evaluations so far."""
        trial = self._trials[number]
        for step in range(self._reported.get(number, 0), len(values)):
            if number in self._behind:
                break
            self._reported[number] = step + 1
            trial.report(values[step], step)
            if trial.should_prune():
                self._behind.add(number)
        return number in self._behind

    def _ask(self, number: int, values: Values | None = None) -> Values:
        """Begin a trial of a point, by default of one that Optuna chooses; return its values."""
        axes = self._sweep.axes
        if values is not None:
            kinds = {axis.path: str if axis.values else type(axis.low) for axis in axes}
            self._study.enqueue_trial({path: kinds[path](word) for path, word in values.items()})
        self._study.sampler = self._sampler(seed=number)
        trial = self._trials[number] = self._study.ask(self._distributions)
        chosen = ((axis, trial.params[axis.path]) for axis in axes)
        return {axis.path: found if axis.values else axis.word(found) for axis, found in chosen}


def _distribution(axis: Axis) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if axis.values:
        return CategoricalDistribution(axis.values)
    kind: Any = IntDistribution if axis.whole else FloatDistribution
    return kind(axis.low, axis.high, log=axis.log)
