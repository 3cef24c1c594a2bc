"""run_jobs: several jobs at a time, one row of the display each, until all have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from typing import Any, Protocol

from magrounding.errors import CheckpointError
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.jobs.job import Job, Outcome
from magrounding.experiment.jobs.process import LocalPlaces
from magrounding.experiment.progress import Display
from magrounding.storage import read_json

_LOOK_SECONDS = 0.5
"""Between two looks at the progress of jobs."""


class Places(Protocol):
    """What runs jobs: this machine, or a cluster.

    Attributes:
        count: jobs that it may be given at a time.
    """

    count: int

    def submit(self, job: Job) -> Future[int]:
        """Start a job; the future holds its exit code, or minus the signal that ended it."""
        ...

    def stop(self) -> None:
        """Ask all jobs to save their states and end; asked again, they end at once."""
        ...


def run_jobs(
    jobs: Iterable[Job],
    places: int | AbstractContextManager[Places],
    display: Display,
    *,
    ended: Callable[[Outcome], Iterable[Job] | None] | None = None,
) -> list[Outcome]:
    """Run jobs, as many at a time as there are places; one that fails is reported at once, and the others go on.

    Args:
        jobs: in the order in which they begin.
        places: so many processes of this machine (`threads.divide_cores`), or a cluster.
        display: has a row for each job that runs.
        ended: called as a job ends; jobs that it returns, as those that had to wait for it, are run too.

    Returns:
        The outcomes in the order in which the jobs ended.

    Raises:
        KeyboardInterrupt: after Ctrl-C, SIGTERM or SIGHUP, when all jobs have saved their states and ended. A second
            Ctrl-C ends them at once.
    """
    waiting, outcomes = list(jobs), []
    running: dict[Future[int], Job] = {}
    with LocalPlaces(places) if isinstance(places, int) else places as where, StopRequest() as stop, display:
        asked = False
        while running or (waiting and not asked):
            if stop.requested and not asked:
                asked = True
                display.say("stopping: each job saves its state")
                where.stop()
            while waiting and not asked and len(running) < where.count:
                job = waiting.pop(0)
                running[where.submit(job)] = job
            done, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
            for future in done:
                job = running.pop(future)
                display.hide(job.name)
                outcomes.append(outcome := _outcome(job, future))
                if outcome.failed and not asked:
                    display.say("\n    ".join([f"{outcome}", *outcome.lines]))
                waiting += (ended and ended(outcome)) or ()
            for job in running.values():
                _show(job, display)
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
    title = title if title.startswith(job.name) else f"{job.name}: {title}"
    display.show(title, progress.get("part"), numbers, row=job.name)
