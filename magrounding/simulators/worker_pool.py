"""WorkerPool: the worker processes of a batch, started together, watched, replaced, ended."""

from __future__ import annotations

import logging
import mmap
import os
import pickle
import sys
import time
import weakref
from collections.abc import Mapping
from itertools import pairwise

import cloudpickle

from magrounding.errors import MagroundingError
from magrounding.simulators.arena import Arena, anonymous_file, arena_bytes
from magrounding.simulators.faults import Fault, SimulatorError
from magrounding.simulators.handle import Failure, WorkerHandle, wait
from magrounding.simulators.spaces import equal_spec
from magrounding.simulators.worker import Recipe
from magrounding.spec import EnvSpec

MAX_FAILURES = 5
"""Failures of one worker, without a finished step between them, after which it is no longer replaced."""

_START_SECONDS = 60.0
"""Seconds that a worker may take to start, on top of the time-out: some simulators take long to load."""

_CLOSE_SECONDS = 3.0

_log = logging.getLogger("magrounding.simulators")


class WorkerPool:
    """The worker processes of a batch; garbage collection and the end of this process end them.

    Args:
        halves: rows of the two groups of the batch, each of which is spread over all workers.
        timeout: seconds without an answer after which a worker counts as hung.

    Raises:
        SimulatorError: a worker that does not start; what make_env raises is raised as it is.
    """

    def __init__(self, recipe: Recipe, workers: int, halves: tuple[slice, slice], timeout: float) -> None:
        self.faults: list[Fault] = []
        self._timeout, self._num_envs = timeout, recipe.num_envs
        self._arena_file, recipe_file = files = anonymous_file(), anonymous_file()
        self.workers = [WorkerHandle(w, groups, files) for w, groups in enumerate(_share(halves, workers))]
        self._finalizer = weakref.finalize(self, _end, self.workers, os.getpid(), files)
        try:
            with os.fdopen(os.dup(recipe_file), "wb") as file:
                pickle.dump((sys.path, cloudpickle.dumps(recipe)), file)
            self.spec = self._start()
        except BaseException:
            self.end()
            raise

    def arena(self) -> Arena:
        """Return the arrays that all workers share; call it before the first command to any of them."""
        size = arena_bytes(self.spec, self._num_envs)
        os.ftruncate(self._arena_file, size)
        return Arena(self.spec, self._num_envs, mmap.mmap(self._arena_file, size))

    def answered(self, tickets: Mapping[WorkerHandle, int]) -> list[WorkerHandle]:
        """Wait until every worker has answered its ticket; return those started anew, whose episodes are lost.

        Raises:
            MagroundingError: an error that a simulator raises for its user; the pool has ended then.
            SimulatorError: a worker failed MAX_FAILURES times; the pool has ended then, too.
        """
        failures = wait(tickets, self._timeout)
        replaced = list(failures)
        try:
            while failures:
                for worker, failure in failures.items():
                    self._note_failure(worker, failure)
                failures = wait({worker: worker.start() for worker in failures}, _START_SECONDS + self._timeout)
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
        failures = wait({worker: worker.start() for worker in self.workers}, _START_SECONDS + self._timeout)
        for worker, failure in failures.items():
            if failure.error is not None:
                failure.error.add_note(f"It was raised in a worker process:\n{failure.trace}")
                raise failure.error
            raise SimulatorError(f"worker {worker.index} did not start: {failure.reason}")
        return equal_spec(pickle.loads(worker.report) for worker in self.workers)

    def _note_failure(self, worker: WorkerHandle, failure: Failure) -> None:
        worker.end()
        error = failure.error
        if isinstance(error, MagroundingError) and not isinstance(error, SimulatorError):
            error.add_note(f"It was raised in a worker process:\n{failure.trace}")
            raise error
        worker.failures += 1
        self.faults.append(Fault(time.time(), worker.index, failure.reason, tuple(worker.rows)))
        trace = f"\n{failure.trace}" if failure.trace else ""
        _log.warning("worker %d is replaced, games %s are lost: %s%s", worker.index, worker.rows, failure.reason, trace)
        if worker.failures >= MAX_FAILURES:
            raise SimulatorError(
                f"worker {worker.index} failed {MAX_FAILURES} times without a finished step, at last: {failure.reason}"
            ) from error


def _share(halves: tuple[slice, slice], workers: int) -> list[tuple[slice, slice]]:
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


def _end(workers: list[WorkerHandle], owner: int, files: tuple[int, int]) -> None:
    if os.getpid() != owner:  # a fork of the owner has the handles, but the workers are not its own
        return
    for worker in workers:
        worker.hang_up()
    deadline = time.monotonic() + _CLOSE_SECONDS
    for worker in workers:
        worker.end(deadline - time.monotonic())
    for file in files:
        os.close(file)
