"""Search: it chooses what is trained next, the points of a list, or what Optuna makes of the results so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from magrounding.errors import needed
from magrounding.experiment.sweep.axis import Axis
from magrounding.experiment.sweep.record import OPTUNA, Point, Sweep


class Search:
    """Choice of the points of a sweep: here of those that it has, a grid's or random ones."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep

    def numbers(self) -> Iterator[int]:
        """Points to train, each as there is a place for it; one that is new is added to the sweep."""
        return iter(range(len(self._sweep.points)))

    def ended(self, number: int, value: float | None) -> None:
        """A point has ended with a result; None: it failed, or was given up."""

    def gives_up(self, number: int, values: Sequence[float]) -> bool:
        """Return whether a point that runs is not worth going on with, by its evaluations so far."""
        return False


class OptunaSearch(Search):
    """Optuna's study of a sweep, made anew from what its points have reached: Optuna keeps no file of its own.

    Its sampler (TPE) chooses points that are likely to be better than those before. Its pruner gives up a point whose
    evaluations so far stay below the median of those before at the same evaluation. Higher results are better.

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
        sampler = optuna.samplers.TPESampler(seed=len(sweep.points), constant_liar=True)
        self._study = optuna.create_study(direction="maximize", sampler=sampler, pruner=optuna.pruners.MedianPruner())
        for number, (value, values) in known.items():
            trial = optuna.trial.create_trial(
                state=self._pruned if value is None else optuna.trial.TrialState.COMPLETE,
                value=value,
                params=self._params(sweep.points[number]),
                distributions=self._distributions,
                intermediate_values=dict(enumerate(values)),
            )
            self._study.add_trial(trial)
        self._begun = [number for number in range(len(sweep.points)) if number not in known]
        for number in self._begun:
            self._study.enqueue_trial(self._params(sweep.points[number]))
        self._trials: dict[int, Any] = {}
        self._reported: dict[int, int] = {}

    def numbers(self) -> Iterator[int]:
        for number in self._begun:
            self._trials[number] = self._study.ask(self._distributions)
            yield number
        while len(self._sweep.points) < self._sweep.count:
            trial = self._study.ask(self._distributions)
            words = {axis.path: trial.params[axis.path] for axis in self._sweep.axes}
            self._sweep.points.append(
                Point({a.path: words[a.path] if a.values else a.word(words[a.path]) for a in self._sweep.axes})
            )
            number = len(self._sweep.points) - 1
            self._trials[number] = trial
            yield number

    def ended(self, number: int, value: float | None) -> None:
        trial = self._trials[number]
        if value is not None:
            self._study.tell(trial, value)
        else:
            self._study.tell(trial, state=self._pruned if self._sweep.points[number].stopped else self._fail)

    def gives_up(self, number: int, values: Sequence[float]) -> bool:
        trial, reported = self._trials[number], self._reported.get(number, 0)
        for step in range(reported, len(values)):
            self._reported[number] = step + 1
            trial.report(values[step], step)
            if trial.should_prune():
                return True
        return False

    def _params(self, point: Point) -> dict[str, Any]:
        """The values of a point as Optuna has them."""
        numbers = {axis.path: int if axis.whole else float for axis in self._sweep.axes if not axis.values}
        return {path: numbers.get(path, str)(word) for path, word in point.values.items()}


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
