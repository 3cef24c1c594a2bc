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
        jobs: in the order in which they begin, but for those that wait for others.
        places: so many processes of this machine (`threads.divide_cores`), or a cluster.
        display: has a row for each job that runs.
        ended: called as a job ends; jobs that it returns are run too.

    Returns:
        The outcomes in the order in which the jobs ended. A job behind one that failed (`Job.after`) did not begin.

    Raises:
        KeyboardInterrupt: after Ctrl-C, SIGTERM or SIGHUP, when all jobs have saved their states and ended. A second
            Ctrl-C ends them at once.
    """
    waiting, outcomes = list(jobs), []
    running: dict[Future[int], Job] = {}

    def finish(job: Job, code: int | None, lines: tuple[str, ...] = ()) -> None:
        outcome = Outcome(job, code, lines)
        outcomes.append(outcome)
        if outcome.failed and not stop.requested:
            display.say("\n    ".join([f"{outcome}", *outcome.lines]))
        waiting.extend((ended and ended(outcome)) or ())

    with LocalPlaces(places) if isinstance(places, int) else places as where, StopRequest() as stop, display:
        asked = 0
        while True:
            if stop.requested and not asked:
                asked = stop.requested
                display.say("stopping: each job saves its state")
                where.stop()
            unfinished = {job.name for job in (*running.values(), *waiting)}
            failed = {outcome.job.name for outcome in outcomes if outcome.failed}
            for job in [] if asked else waiting[:]:
                if failed.intersection(job.after):
                    waiting.remove(job)
                    finish(job, None)
                elif len(running) < where.count and unfinished.isdisjoint(job.after):
                    waiting.remove(job)
                    running[where.submit(job)] = job
            if not running and (asked or not waiting):
                break
            done, _ = wait(running, _LOOK_SECONDS, FIRST_COMPLETED)
            for future in done:
                job = running.pop(future)
                display.hide(job.name)
                finish(job, *_end_of(job, future))
            for job in running.values():
                _show(job, display)
        stop.stop()
    return outcomes


def _end_of(job: Job, future: Future[int]) -> tuple[int, tuple[str, ...]]:
    """The exit code of a job that ended, and its last lines if it failed, or why a cluster gave it up."""
    try:
        code = future.result()
    except Exception as error:
        return 1, (*job.last_lines(), *f"{error}".splitlines()[:1])
    return code, job.last_lines() if code else ()


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
