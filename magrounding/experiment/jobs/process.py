"""A job as a process of this machine, which ends with the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

from magrounding.experiment.jobs.job import Job
from magrounding.signals import JOB


class JobProcess:
    """The process of a job; its output goes to the job's log.

    Args:
        job: what to run.
        environment: variables beside those of this process.
        cwd: the folder it works in, by default this process's.

    It has a session of its own, so that Ctrl-C at a terminal reaches it once, by `stop`. Its standard input is a pipe
    that nothing is written to: the process stops when that is closed (`signals.ends_with_parent`), however this process
    ends.
    """

    def __init__(self, job: Job, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        with job.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *job.argv],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {}), JOB: str(job.progress.absolute())},
                cwd=cwd,
            )
        self._job, self._asked = job, False

    def stop(self) -> None:
        """Ask it to save its state and end; asked again, it is killed: what it saved last is whole."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL if self._asked else signal.SIGTERM)
        self._asked = True

    def wait(self, look: float | None = None) -> int:
        """Wait for its end, clear up behind it, and return its exit code, or minus the signal that ended it.

        Args:
            look: seconds after which this process looks whether it is interrupted itself; None: it cannot be.
        """
        while (code := self._ended(look)) is None:
            pass
        self._process.stdin.close()  # type: ignore[union-attr]
        self._job.progress.unlink(missing_ok=True)
        if code == 0 or self._asked:  # of what failed, it stays
            self._job.log.unlink(missing_ok=True)
        return code

    def _ended(self, seconds: float | None) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class LocalPlaces:
    """Runner of at most `count` jobs at a time on this machine."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count)
        self._processes: dict[Future[int], JobProcess] = {}

    def submit(self, job: Job) -> Future[int]:
        """Start a job; the future holds its exit code."""
        process = JobProcess(job)
        future = self._pool.submit(process.wait)
        self._processes[future] = process
        return future

    def stop(self, only: Future[int] | None = None) -> None:
        """Ask all jobs, or `only` one, to save their states and end; asked again, they end at once."""
        for future, process in self._processes.items():
            if not future.done() and only in (None, future):
                process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pool.shutdown()
