"""ProcessVectorEnv: simulators in workers that are watched and replaced."""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import HasHalves
from magrounding.errors import CallOrderError, ConfigurationError, MagroundingError
from magrounding.registry import WORKERS, load
from magrounding.simulators.arena import Arena, View
from magrounding.simulators.faults import Failure, Fault, SimulatorError
from magrounding.simulators.local_workers import LocalHandle, LocalWorkers
from magrounding.simulators.simulator_env import SimulatorVectorEnv
from magrounding.simulators.spaces import equal_spec
from magrounding.simulators.worker import RESET, STEP_BOTH, STEP_GROUP, Recipe
from magrounding.spec import EnvSpec
from magrounding.vector import Info, Observation, StepResult, alone, check_actions, check_count, check_rows

MAX_FAILURES = 5
"""Failures of one worker, without a finished step between them, after which it is no longer replaced."""

_START_SECONDS = 60.0
"""Seconds that a worker may take to start, on top of the time-out: some simulators take long to load."""

_CLOSE_SECONDS = 3.0

_log = logging.getLogger("magrounding.simulators")


class WorkerPool:
    """The workers of a batch; garbage collection and the end of this process end them.

    Args:
        workers: not yet started; the pool closes them. Those of an extension do as LocalWorkers do.
        timeout: seconds without an answer after which a worker counts as hung.

    Raises:
        SimulatorError: a worker that does not start; what make_env raises is raised as it is.
    """

    def __init__(self, workers: LocalWorkers, timeout: float) -> None:
        self.faults: list[Fault] = []
        self.workers: Sequence[LocalHandle] = workers.handles
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

    def answered(self, tickets: Mapping[LocalHandle, int]) -> list[LocalHandle]:
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

    def _begin(self, workers: Sequence[LocalHandle]) -> dict[LocalHandle, Failure]:
        """Start workers together; return those that failed to, and why."""
        return self._wait({worker: worker.start() for worker in workers}, _START_SECONDS + self._timeout)

    def _wait(self, tickets: Mapping[LocalHandle, int], seconds: float) -> dict[LocalHandle, Failure]:
        """Wait until every worker has answered its ticket; return those that failed to within `seconds`, and why."""
        failures: dict[LocalHandle, Failure] = {}
        deadline = time.monotonic() + seconds
        while waiting := [each for each in tickets if each.answered < tickets[each] and each not in failures]:
            ready = self._all.ready(waiting, deadline - time.monotonic())
            if not ready and time.monotonic() >= deadline:
                return failures | dict.fromkeys(waiting, Failure(f"no answer for {seconds:g} s"))
            for worker in ready:
                if failure := worker.read():
                    failures[worker] = failure
        return failures

    def _note_failure(self, worker: LocalHandle, failure: Failure) -> None:
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


def others(workers: str) -> tuple[int, Any]:
    """Return K and the class of workers "KIND:K" of an extension; K is 0 of a text that names none."""
    kind, _, count = workers.partition(":")
    named = kind in WORKERS and count.isascii() and count.isdecimal()
    return (int(count), load(WORKERS[kind].code)) if named else (0, None)


def _end(workers: LocalWorkers, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner has the handles, but the workers are not its own
        return
    for worker in workers.handles:
        worker.hang_up()
    deadline = time.monotonic() + _CLOSE_SECONDS
    for worker in workers.handles:
        worker.end(deadline - time.monotonic())
    workers.close()


_BOTH = (0, 1)


class ProcessVectorEnv(SimulatorVectorEnv, HasHalves):
    """Envs of a simulator in workers, which are processes here or actors of Ray; see `vectorize` and `VectorEnv`.

    The batch has two halves, `groups` of rows, each spread over all workers: while one is simulated the caller can
    think about the other, `send(actions, 0)`, …, `receive(0)`. `step` plays both.

    A worker that dies, hangs or raises is replaced, and its episodes are lost: each is done and not won in that step
    (in the next step of its group if that is not being played), truncated for the living agents with reward 0, with
    `info.fault` set, its final observation the last one shown, its next episode on show. Other rows do not notice.

    A MagroundingError that a simulator raises is meant for its user: it is raised here, and the envs are closed.

    Attributes:
        groups: the rows of each half; one where there is a single env.
        faults: workers that were replaced so far.
    """

    def __init__(
        self, recipe: Recipe, workers: int | str, id: str, options: Mapping[str, Any], copy: bool, timeout: float
    ) -> None:
        num_envs = recipe.num_envs
        super().__init__(id, options, num_envs)
        half = num_envs - num_envs // 2
        halves = slice(0, half), slice(half, num_envs)
        self.groups = halves if num_envs > 1 else halves[:1]
        count, kind = (workers, LocalWorkers) if isinstance(workers, int) else others(workers)
        self._pool = WorkerPool(kind(recipe, shares_of(halves, min(count, num_envs))), timeout)
        self.spec, self.faults = self._pool.spec, self._pool.faults
        self.num_agents = self.spec.num_agents
        self._arena = self._pool.arena()
        self._shown = Arena(self.spec, num_envs)  # the caller's: what a dying worker writes is never seen
        self._copies = list(zip(self._shown.visible_arrays(), self._arena.visible_arrays(), strict=True))
        self._fault = np.zeros(num_envs, np.bool_)
        self._episode = np.zeros(num_envs, np.int64)  # the last one that was started in each row
        self._rows = {(0,): halves[0], (1,): halves[1], _BOTH: slice(0, num_envs)}
        self._views = {g: View(self._shown, rows, (id, self.spec), copy=copy) for g, rows in self._rows.items()}
        self._tickets: dict[int, dict[LocalHandle, int]] = {}  # by group, of steps that are being played
        self._lost: set[tuple[LocalHandle, int]] = set()  # by worker and group: episodes whose loss is yet to be shown

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers, on the machines where they run; 0 after the end."""
        return [worker.pid for worker in self._pool.workers]

    @alone
    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
        """Start afresh, as in the base; steps that were sent and not received are forgotten.

        A row whose worker fails has its `info.fault` set, and shows the episode after. For some of the rows alone, a
        CallOrderError while a step is being played.
        """
        self._require_open()
        if rows is not None:
            self._require_rest("reset")
        arena, pool = self._arena, self._pool
        seeds, chosen = self._seeds(seed), check_rows(rows, self.num_envs)
        pool.answered({worker: worker.sent for worker in pool.workers})
        self._tickets.clear()
        arena.episode[chosen] = self._episode[chosen]
        self._select(chosen)
        self._name_episodes(seeds, chosen)
        self._episode[chosen] = arena.episode[chosen]
        self._fault[:] = False
        self._fault[self._lost_rows(_BOTH)] = True  # of those that stay, it has not been shown yet
        self._fault[chosen] = False
        self._obey(RESET)
        self._fault[self._lost_rows(_BOTH)] = True
        self._shown.visible[:] = arena.visible
        self._begun = True
        return self._views[_BOTH].start(arena.final_observation, self._fault)

    @alone
    def step(self, actions: ArrayLike) -> StepResult:
        self._send(actions, _BOTH)
        return self._receive(_BOTH)

    def send(self, actions: ArrayLike, group: int) -> None:
        """Begin a step of group 0 or 1: actions [R, n] of the rows `groups[group]`.

        Raises:
            InvalidAction: wrong actions.
            CallOrderError: before `reset`, or a step of this group is being played.
        """
        self._send(actions, (self._check_group(group),))

    def receive(self, group: int | None = None) -> StepResult:
        """Wait for the step of one group; return as `step` does, for its rows alone (`info.final_rows` count from 0).

        Without a group, wait for both, and return what `step` does. A CallOrderError where nothing was sent.
        """
        groups = tuple(range(len(self.groups))) if group is None else (self._check_group(group),)
        for each in groups:
            if each not in self._tickets:
                raise CallOrderError(f"receive({'' if group is None else each}) comes after send(actions, {each})")
        return self._receive(groups)

    def best_actions(self, rows: ArrayLike | None = None) -> np.ndarray:
        """Return best actions as in the base.

        An episode that was lost and not yet shown as such gets every action: whatever is played is lost. A
        CallOrderError for a row whose step is being played.
        """
        asked = np.zeros(self.num_envs, np.bool_)
        asked[check_rows(rows, self.num_envs)] = True
        if any(asked[self._rows[group,]].any() for group in self._tickets):
            raise CallOrderError("receive the step of these games before asking for their best actions")
        labels = super().best_actions(rows)
        for worker, group in self._lost:
            within = worker.groups[group]
            labels[within][asked[within]] = self._arena.labels[within][asked[within]] = True
        return labels

    def close(self) -> None:
        """End all workers: ask them, wait for a moment, kill them. Garbage collection closes too."""
        self._pool.end()

    def _obey(self, command: bytes) -> None:
        self._settle({worker: worker.send(command) for worker in self._pool.workers})

    def _send(self, actions: ArrayLike, groups: tuple[int, ...]) -> None:
        self._require_start("step")
        if any(group in self._tickets for group in groups):
            raise CallOrderError("a step is being played: receive it, or reset, before the next")
        rows = self._rows[groups]
        shape = (rows.stop - rows.start, self.num_agents)
        self._arena.actions[rows] = check_actions(actions, shape, self.spec.num_actions)
        for group in groups:
            self._tickets[group] = {}
        for worker in self._pool.workers:
            playing = [g for g in groups if worker.has_rows[g] and (worker, g) not in self._lost]
            if playing:
                ticket = worker.send(STEP_BOTH if len(playing) > 1 else STEP_GROUP[playing[0]])
                for group in playing:
                    self._tickets[group][worker] = ticket

    def _receive(self, groups: tuple[int, ...]) -> StepResult:
        self._settle({worker: ticket for group in groups for worker, ticket in self._tickets[group].items()})
        for group in groups:
            for worker in self._tickets.pop(group):
                worker.failures = 0
        rows, shown, lost = self._rows[groups], self._shown, self._lost_rows(groups)
        kept = self._keep(lost) if len(lost) else None
        if groups == _BOTH:
            shown.visible[:] = self._arena.visible
        else:
            for mine, theirs in self._copies:
                mine[rows] = theirs[rows]
        self._fault[rows] = False
        if kept is not None:
            shown.truncated[lost], shown.score[lost], shown.length[lost], shown.returns[lost] = kept
            shown.done[lost] = self._fault[lost] = True
        self._episode[rows] = shown.episode[rows]
        return self._views[groups].after(self._arena.final_observation, self._fault[rows])

    def _settle(self, tickets: dict[LocalHandle, int]) -> None:
        """Wait for answers; where a worker was replaced, start the next episodes and note what is lost."""
        arena, pool = self._arena, self._pool
        replaced = pool.answered(tickets)
        while replaced:
            arena.selected[:] = False
            for worker in replaced:
                self._lost.update((worker, group) for group in _BOTH if worker.has_rows[group])
                for others in self._tickets.values():
                    others.pop(worker, None)
                self._episode[worker.rows] += 1
                arena.episode[worker.rows], arena.selected[worker.rows] = self._episode[worker.rows], True
            replaced = pool.answered({worker: worker.send(RESET) for worker in replaced})

    def _lost_rows(self, groups: Sequence[int]) -> np.ndarray:
        """Return the rows [F] of these groups whose loss is to be shown now."""
        rows = np.zeros(self.num_envs, np.bool_)
        for worker, group in self._lost:
            if group in groups:
                rows[worker.groups[group]] = True
        self._lost = {(worker, group) for worker, group in self._lost if group not in groups}
        return rows.nonzero()[0]

    def _keep(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return truncations, score, length, returns of lost rows; their last observations become their final ones."""
        shown = self._shown
        for name, array in self._arena.final_observation.items():
            array[rows] = shown.observation[name][rows]
        over = shown.done[rows]  # what is shown of them, besides who is alive, is of the episode before
        score, length = np.where(over, 0, shown.score[rows]), np.where(over, 0, shown.length[rows]) + 1
        return shown.alive[rows], score, length, np.where(over[:, None], 0, shown.returns[rows])

    def __getstate__(self) -> NoReturn:
        """Refuse with a ConfigurationError: neither copies nor pickles can be made."""
        raise ConfigurationError(
            "games in worker processes can be neither copied nor pickled: make others, "
            "or play them in this process with workers=0"
        )

    def _check_group(self, group: int) -> int:
        return check_count("group", group, 0, len(self.groups) - 1)

    def _require_open(self) -> None:
        self._closed = self._pool.has_ended
        super()._require_open()

    def _require_rest(self, what: str) -> None:
        super()._require_rest(what)
        if self._tickets:
            raise CallOrderError(f"receive the steps that were sent before {what}()")
