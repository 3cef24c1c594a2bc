"""A job as a process of this machine, which ends with the process that started it."""

from __future__ import annotations

import os
import select
import signal
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from magrounding.experiment.jobs.forking import ForkServer
from magrounding.experiment.jobs.job import Job, JobsFailed


class JobProcess:
    """The process of a job; its output goes to the job's log.

    Args:
        job: what to run.
        server: forks it.

    It has a session of its own, so that Ctrl-C at a terminal reaches it once, by `stop`. Its standard input is a socket
    that nothing more is written to: the process stops when that is closed (`signals.stop_with_parent`), however this
    process ends.

    Raises:
        JobsFailed: the server was killed.
    """

    def __init__(self, job: Job, server: ForkServer) -> None:
        job.folder.mkdir(parents=True, exist_ok=True)
        with job.log.open("wb") as log:
            self._line = server.fork(job.argv, job.progress, log)
        self._answers = self._line.makefile("rb", buffering=0)
        if not (pid := self._answer()):
            self._close()
            raise JobsFailed("the process that starts jobs was killed: the same command goes on")
        self._job, self._pid, self._asked = job, int(pid), False

    def stop(self) -> None:
        """Ask it to save its state and end; asked again, it is killed: what it saved last is whole."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL if self._asked else signal.SIGTERM)
        self._asked = True

    def wait(self, look: float | None = None) -> int:
        """Wait for its end, clear up behind it, and return its exit code, or minus the signal that ended it.

        Args:
            look: seconds after which this process looks whether it is interrupted itself; None: it cannot be.
        """
        while not select.select([self._line], [], [], look)[0]:
            pass
        code = int(self._answer() or -signal.SIGKILL)  # what watches it was killed: closing its input ends it
        self._close()
        self._job.progress.unlink(missing_ok=True)
        if code == 0 or self._asked:  # of what failed, it stays
            self._job.log.unlink(missing_ok=True)
        return code

    def _answer(self) -> bytes:
        """The next line of what watches the process; b"" where that was killed."""
        with suppress(ConnectionError):
            return self._answers.readline()
        return b""

    def _close(self) -> None:
        self._answers.close()
        self._line.close()


class LocalPlaces:
    """Runner of at most `count` jobs at a time on this machine."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count)
        self._processes: dict[Future[int], JobProcess] = {}
        self._server: ForkServer | None = None  # started with the first job

    def submit(self, job: Job) -> Future[int]:
        """Start a job; the future holds its exit code."""
        self._server = self._server or ForkServer()
        process = JobProcess(job, self._server)
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
        if self._server is not None:
            self._server.__exit__()
