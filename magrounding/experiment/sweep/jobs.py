"""SweepJobs: the trainings of a sweep, one for each seed of each point, as a search chooses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from magrounding.experiment.config import RunConfig
from magrounding.experiment.jobs.job import Job, Outcome
from magrounding.experiment.jobs.seeds import seed_jobs, unfinished
from magrounding.experiment.sweep.axis import Values
from magrounding.experiment.sweep.record import OPTUNA, Sweep, SweepFolder, evaluations, reached
from magrounding.experiment.sweep.search import make_search
from magrounding.play.run_folder import RunFolder


class SweepJobs:
    """The jobs of a sweep, for `run_jobs`: those of a point that is finished are left out.

    Args:
        folder: of the sweep, by a path that is the same everywhere.
        sweep: its record, which is written as points are added or given up.
        at: the options of a point.
        begin: writes the folder of a run that is not there yet.
        words: further arguments of `train`.
    """

    def __init__(
        self,
        folder: SweepFolder,
        sweep: Sweep,
        at: Callable[[Values], RunConfig],
        begin: Callable[[RunConfig, RunFolder], object],
        words: Sequence[str],
    ) -> None:
        self._folder, self._sweep, self._at, self._begin, self._words = folder, sweep, at, begin, words
        chosen = range(len(sweep.points)) if sweep.search == OPTUNA else ()
        self._search = make_search(sweep, {k: found for k in chosen if (found := self._known(k))})
        self._settings: dict[int, RunConfig] = {}
        self._point: dict[str, int] = {}  # name of a job → its point
        self._left: dict[int, int] = {}  # point → jobs that have not ended
        self._failed: set[int] = set()
        self._seen: dict[int, tuple[int, ...]] = {}  # point → sizes of its files of metrics at the last look

    def jobs(self) -> Iterator[Job]:
        """All jobs that are to be run, each made as it is asked for."""
        for number in self._search.numbers():
            point, run = self._sweep.points[number], self._folder.run(number)
            self._folder.write(self._sweep)
            settings = self._settings[number] = self._at(point.values)
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
        point, settings, run = self._sweep.points[number], self._settings[number], self._folder.run(number)
        if point.stopped:
            return True
        files = [folder.metrics for folder in run.of_seeds(settings.seeds).values()]
        sizes = tuple(file.stat().st_size if file.exists() else 0 for file in files)
        if sizes == self._seen.get(number):
            return False
        self._seen[number] = sizes
        values = evaluations(settings, run)
        if self._search.gives_up(number, values):
            point.stopped = len(values)
            self._folder.write(self._sweep)
        return bool(point.stopped)

    def _end(self, number: int) -> None:
        """Tell the search where the last job of a point has ended."""
        self._left[number] -= 1
        if not self._left[number]:
            whole = number not in self._failed and not self._sweep.points[number].stopped
            values = evaluations(self._settings[number], self._folder.run(number))
            self._search.ended(number, self._value(number) if whole else None, values)

    def _value(self, number: int) -> float | None:
        """The interquartile mean of a point; None where no seed has a result."""
        results = self._folder.results(number)
        statistics = None if results is None else reached(results)
        return None if statistics is None else statistics.iqm

    def _known(self, number: int) -> tuple[float | None, Sequence[float]] | None:
        """The result and the evaluations of a point that has ended; None of one that has not."""
        point, run = self._sweep.points[number], self._folder.run(number)
        settings = self._at(point.values)
        if not point.stopped and (not run.holds_run or unfinished(settings, run)):
            return None
        value = None if point.stopped else self._value(number)
        return value, evaluations(settings, run)
