"""WorkerPool: the workers of a batch, started together, watched, replaced, ended."""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from magrounding.errors import MagroundingError
from magrounding.simulators.arena import Arena
from magrounding.simulators.faults import Failure, Fault, SimulatorError
from magrounding.simulators.local_workers import LocalHandle, LocalWorkers
from magrounding.simulators.ray_workers import RayHandle, RayWorkers
from magrounding.simulators.spaces import equal_spec
from magrounding.spec import EnvSpec

Handle = LocalHandle | RayHandle
Workers = LocalWorkers | RayWorkers

MAX_FAILURES = 5
"""Failures of one worker, without a finished step between them, after which it is no longer replaced."""

_START_SECONDS = 60.0
"""Seconds that a worker may take to start, on top of the time-out: some simulators take long to load."""

_CLOSE_SECONDS = 3.0

_log = logging.getLogger("magrounding.simulators")


class WorkerPool:
    """The workers of a batch; garbage collection and the end of this process end them.

    Args:
        workers: not yet started; the pool closes them.
        timeout: seconds without an answer after which a worker counts as hung.

    Raises:
        SimulatorError: a worker that does not start; what make_env raises is raised as it is.
    """

    def __init__(self, workers: Workers, timeout: float) -> None:
        self.faults: list[Fault] = []
        self.workers: Sequence[Handle] = workers.handles
        self._all: Any = workers
        self._timeout = timeout
        self._finalizer = weakref.finalize(self, _end, workers, os.getpid())
        try:
            self.spec = self._start()
        except BaseException:
            self.end()
            raise

    def arena(self) -> Arena:
        """Return the arrays that workers write; call it before the first command to any of them."""
        return self._all.arena(self.spec)

    def answered(self, tickets: Mapping[Handle, int]) -> list[Handle]:
        """Wait until every worker has answered its ticket; return those started anew, whose episodes are lost.

        Raises:
            MagroundingError: an error that a simulator raises for its user; the pool has ended then.
            SimulatorError: a worker failed MAX_FAILURES times; the pool has ended then, too.
        """
        failures = self._wait(tickets, self._timeout)
        replaced = list(failures)
        try:
            while failures:
                for worker, failure in failures.items():
                    self._note_failure(worker, failure)
                failures = self._begin(list(failures))
        except BaseException:  # a worker is missing, so the pool is of no use
            self.end()
            raise
        return replaced

    @property
    def has_ended(self) -> bool:
        """True once there are no workers any more."""
        return not self._finalizer.alive

    def end(self) -> None:
        """End all workers: ask them, wait for a moment, kill them. A second call does nothing."""
        self._finalizer()

    def _start(self) -> EnvSpec:
        for worker, failure in self._begin(self.workers).items():
            if failure.error is None:
                raise SimulatorError(f"worker {worker.index} did not start: {failure.reason}")
            raise failure.error
        return equal_spec(worker.spec for worker in self.workers)

    def _begin(self, workers: Sequence[Handle]) -> dict[Handle, Failure]:
        """Start workers together; return those that failed to, and why."""
        return self._wait({worker: worker.start() for worker in workers}, _START_SECONDS + self._timeout)

    def _wait(self, tickets: Mapping[Handle, int], seconds: float) -> dict[Handle, Failure]:
        """Wait until every worker has answered its ticket; return those that failed to within `seconds`, and why."""
        failures: dict[Handle, Failure] = {}
        deadline = time.monotonic() + seconds
        while waiting := [each for each in tickets if each.answered < tickets[each] and each not in failures]:
            ready = self._all.ready(waiting, deadline - time.monotonic())
            if not ready and time.monotonic() >= deadline:
                return failures | dict.fromkeys(waiting, Failure(f"no answer for {seconds:g} s"))
            for worker in ready:
                if failure := worker.read():
                    failures[worker] = failure
        return failures

    def _note_failure(self, worker: Handle, failure: Failure) -> None:
        worker.end()
        error = failure.error
        if isinstance(error, MagroundingError) and not isinstance(error, SimulatorError):
            raise error
        worker.failures += 1
        self.faults.append(Fault(time.time(), worker.index, failure.reason, tuple(worker.rows)))
        trace = f"\n{failure.trace}" if failure.trace else ""
        _log.warning("worker %d is replaced, games %s are lost: %s%s", worker.index, worker.rows, failure.reason, trace)
        if worker.failures >= MAX_FAILURES:
            raise SimulatorError(
                f"worker {worker.index} failed {MAX_FAILURES} times without a finished step, at last: {failure.reason}"
            ) from error


def shares_of(halves: tuple[slice, slice], workers: int) -> list[tuple[slice, slice]]:
    """Rows of each worker in both halves: each half spread evenly, and all rows too.

    Where a half does not divide, the first workers get one more of the first half, the last ones of the second.
    """
    shares = []
    for half, backwards in zip(halves, (False, True), strict=True):
        whole, rest = divmod(half.stop - half.start, workers)
        counts = [whole + (w < rest) for w in range(workers)]
        stops = [half.start]
        for count in reversed(counts) if backwards else counts:
            stops.append(stops[-1] + count)
        shares.append([slice(a, b) for a, b in pairwise(stops)])
    return list(zip(*shares, strict=True))


def _end(workers: Workers, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner has the handles, but the workers are not its own
        return
    for worker in workers.handles:
        worker.hang_up()
    deadline = time.monotonic() + _CLOSE_SECONDS
    for worker in workers.handles:
        worker.end(deadline - time.monotonic())
    workers.close()
