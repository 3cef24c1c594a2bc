"""run_jobs: several jobs at a time, one row of the display each, until all have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from magrounding.errors import CheckpointError
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.jobs.job import Job, Outcome
from magrounding.experiment.jobs.process import LocalPlaces
from magrounding.progress import Display
from magrounding.storage import read_json

_LOOK_SECONDS = 0.5
"""Seconds between two looks at the progress of jobs."""


def run_jobs(
    jobs: Iterable[Job],
    places: int | AbstractContextManager[Any],
    display: Display,
    *,
    ended: Callable[[Outcome], Iterable[Job] | None] | None = None,
    stops: Callable[[Job], bool] | None = None,
) -> list[Outcome]:
    """Run jobs, as many at a time as there are places; one that fails is reported at once, and the others go on.

    Args:
        jobs: in the order in which they begin; each is asked for when there is a place for it.
        places: so many processes of this machine (`threads.divide_cores`), or a cluster, which does as `LocalPlaces`.
        display: has a row for each job that runs.
        ended: called as a job ends; jobs that it returns, as those that had to wait for it, are run too.
        stops: asked again and again for each job that runs; one for which it is true saves its state and ends.

    Returns:
        The outcomes in the order in which the jobs ended.

    Raises:
        KeyboardInterrupt: after Ctrl-C, SIGTERM or SIGHUP, when all jobs have saved their states and ended. A second
            Ctrl-C ends them at once.
    """
    coming, outcomes = iter(jobs), []
    waiting: list[Job] = []
    running: dict[Future[int], Job] = {}
    stopped: set[Future[int]] = set()
    with LocalPlaces(places) if isinstance(places, int) else places as where, StopRequest() as stop, display:
        asked = False
        while True:
            if stop.requested and not asked:
                asked = True
                display.say("stopping: each job saves its state")
                where.stop()
            while not asked and len(running) < where.count:
                job = waiting.pop(0) if waiting else next(coming, None)
                if job is None:
                    break
                running[where.submit(job)] = job
            if not running:
                break
            done, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
            for future in done:
                job = running.pop(future)
                display.hide(job.name)
                outcomes.append(outcome := replace(_outcome(job, future), stopped=future in stopped))
                if outcome.failed and not asked:
                    display.say("\n    ".join([f"{outcome}", *outcome.lines]))
                waiting += (ended and ended(outcome)) or ()
            for future, job in running.items():
                _show(job, display)
                if stops is not None and future not in stopped and not asked and stops(job):
                    stopped.add(future)
                    where.stop(future)
        stop.stop()
    return outcomes


def _outcome(job: Job, future: Future[int]) -> Outcome:
    """The outcome of a job that ended: its last lines if it failed, or why a cluster gave it up."""
    try:
        code = future.result()
    except Exception as error:
        return Outcome(job, 1, (*job.last_lines(), *f"{error}".splitlines()[:1]))
    return Outcome(job, code, job.last_lines() if code else ())


def _show(job: Job, display: Display) -> None:
    """Bring the row of a job up to date."""
    try:
        progress: dict[str, Any] = read_json(job.progress)
    except CheckpointError:  # it has not begun to report
        display.show(job.name, None, ("starting",), row=job.name)
        return
    title, numbers = str(progress.get("title")), tuple(map(str, progress.get("numbers") or ()))
    own = job.name.rpartition(", ")[2]  # of "point 4, seed 1"
    title = f"{job.name}{title.removeprefix(own)}" if title.startswith(own) else f"{job.name}: {title}"
    display.show(title, progress.get("part"), numbers, row=job.name)
