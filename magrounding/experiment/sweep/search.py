"""Search: it chooses what is trained next, the points of a list, or what Optuna makes of the results so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from magrounding.errors import needed
from magrounding.experiment.sweep.axis import Axis, Values, new_point
from magrounding.experiment.sweep.record import OPTUNA, Point, Sweep


class Search:
    """Choice of the points of a sweep: here of those that it has, a grid's or random ones."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    def numbers(self) -> Iterator[int]:
        """Points to train, each as there is a place for it; one that is new is added to the sweep."""
        return iter(range(len(self._sweep.points)))

    def ended(self, number: int, value: float | None, values: Sequence[float]) -> None:
        """A point has ended with a result, None where it failed or was given up; and with evaluations before."""

    def gives_up(self, number: int, values: Sequence[float]) -> bool:
        """Return whether a point that runs is not worth going on with, by its evaluations so far."""
        return False


class OptunaSearch(Search):
    """Optuna's study of a sweep, repeated from what its points have reached: Optuna keeps no file of its own.

    Its sampler (TPE) chooses points that are likely to be better than those before. Its pruner gives up a point whose
    evaluations so far stay below the median of those before at the same evaluation. Higher results are better. A point
    that was trained already is not trained again: one that is drawn at random takes its place. Each choice depends on
    the results before and on its number alone, so a search that was stopped makes the same ones.

    Args:
        sweep: with its points so far.
        known: number of each point that has ended → its result, None where it was given up; and its evaluations.

    Raises:
        MissingExtra: Optuna is not installed.
    """

    def __init__(self, sweep: Sweep, known: dict[int, tuple[float | None, Sequence[float]]]) -> None:
        with needed("--optuna", "sweeps"):
            import optuna
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # a sweep has a display of its own
        super().__init__(sweep)
        self._fail, self._pruned = optuna.trial.TrialState.FAIL, optuna.trial.TrialState.PRUNED
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
        points, axes = self._sweep.points, self._sweep.axes
        for number in self._begun:
            self._ask(number, points[number].values)
            yield number
        while (number := len(points)) < self._sweep.count:
            values, seen = self._ask(number), {tuple(point.values.values()) for point in points}
            if tuple(values.values()) in seen:
                self._study.tell(self._trials[number], state=self._fail)
                values = new_point(axes, seen, np.random.default_rng(number))
                if values is None:
                    return
                self._ask(number, values)
            points.append(Point(values))
            yield number

    def ended(self, number: int, value: float | None, values: Sequence[float]) -> None:
        """Optuna is told the same of a point that is behind, whether that was seen before its end or not."""
        trial = self._trials[number]
        if self.gives_up(number, values) or self._sweep.points[number].stopped:
            self._study.tell(trial, state=self._pruned)
        elif value is None:
            self._study.tell(trial, state=self._fail)
        else:
            self._study.tell(trial, value)

    def gives_up(self, number: int, values: Sequence[float]) -> bool:
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
        if values is not None:
            numbers = {axis.path: int if axis.whole else float for axis in self._sweep.axes if not axis.values}
            self._study.enqueue_trial({path: numbers.get(path, str)(word) for path, word in values.items()})
        self._study.sampler = self._sampler(seed=number)
        trial = self._trials[number] = self._study.ask(self._distributions)
        chosen = ((axis, trial.params[axis.path]) for axis in self._sweep.axes)
        return {axis.path: found if axis.values else axis.word(found) for axis, found in chosen}


def _distribution(axis: Axis) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if axis.values:
        return CategoricalDistribution(axis.values)
    if axis.whole:
        return IntDistribution(round(axis.low), round(axis.high), log=axis.log)
    return FloatDistribution(axis.low, axis.high, log=axis.log)


def make_search(sweep: Sweep, known: dict[int, tuple[float | None, Sequence[float]]]) -> Search:
    """The search of a sweep; see `OptunaSearch`."""
    return OptunaSearch(sweep, known) if sweep.search == OPTUNA else Search(sweep)
