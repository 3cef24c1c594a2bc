"""The one place that decides how many threads compute: torch, learners, simulators.

Thread pools that spin against one another are slower than none. Agents learn independently, so each agent acts and
learns in a Python thread of its own while torch computes each operation with one thread: the two cores then work on
two agents instead of meeting at the end of every small operation. A single agent shares with no other and gets
torch's threads instead. Simulators step a learner's batch in microseconds and stay on one thread until a batch is
large enough to be worth waking others.

Measured with full-size txt2π, two cores, unrolls of 80 × 20, agent samples/s: two agents in threads of their own
1,295, one after the other with two torch threads 1,311, with one 753; on a machine busy with other work 445 against
95, because spinning threads wait for those that were descheduled. Three agents in three threads 1,266, in two 1,125.

Where simulators play, a single agent's torch has one thread as well: DRRN reads 1,200 actions of ScienceWorld in 12 ms
with one thread and in 88 to 490 ms with two, on two cores with other work on them.

One torch thread also makes every sum's order fixed, which bit-exact resumption rests on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from weakref import finalize

from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")

ParallelMap = Callable[[Callable[[T], R], Iterable[T]], Iterable[R]]
"""Applies a function to every item, in any order in time, and yields the results in the order of the items."""

ROWS_PER_WORLD_THREAD = 512
"""Rows of a batch that make another simulator thread worth waking."""


@dataclass(frozen=True)
class ThreadPlan:
    """How a process shares its cores.

    Attributes:
        torch: threads inside one torch operation.
        agents: Python threads, each acting and learning for one agent at a time.
        world: threads of the simulator.
    """

    torch: int
    agents: int
    world: int


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def plan_threads(
    num_agents: int, num_envs: int, *, cores: int | None = None, cuda: bool = False, simulators: bool = False
) -> ThreadPlan:
    """Share the cores between agents, torch and the simulator.

    With several agents every agent gets a thread, even where that is more than there are cores: three agents on two
    cores finish together after 1.5 turns, while two threads would need 2. On a GPU the threads only launch kernels.

    Args:
        num_agents: n, agents that act and learn apart.
        num_envs: B, rows of the simulator.
        cores: cores to share; by default those this process may run on.
        cuda: whether the networks live on a GPU.
        simulators: whether processes play the games, which take what cores there are; the networks read few of them.
    """
    cores = cores or available_cores()
    world = max(1, min(cores, num_envs // ROWS_PER_WORLD_THREAD))
    if num_agents == 1 or cores == 1:
        return ThreadPlan(torch=1 if cuda or simulators else cores, agents=1, world=world)
    return ThreadPlan(torch=1 if cuda else max(1, cores // num_agents), agents=num_agents, world=world)


@contextmanager
def using(plan: ThreadPlan) -> Iterator[ParallelMap]:
    """Set torch's threads as planned and yield a map over agents; both are undone at the end."""
    import scipy.linalg.cython_blas  # noqa: F401  compiled kernels multiply by it; it has to be there to be limited
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(plan.torch)
    try:
        with threadpool_limits(1, "blas"):  # products within compiled kernels, of which every agent runs its own
            if plan.agents == 1:
                yield map
            else:
                # OpenMP counts threads for each thread that calls it: what was set above does not reach the pool's.
                with ThreadPoolExecutor(plan.agents, "agent", torch.set_num_threads, (plan.torch,)) as pool:
                    yield pool.map
    finally:
        torch.set_num_threads(before)


CALLER_SHARE = 1.16
"""The calling thread's rows for each row of a helper: it starts earlier, and would else sleep until the helper ends."""


class RowThreads:
    """Runs a kernel over all rows of a batch, one chunk a thread; kernels take (first, last, …) and release the GIL.

    A thread pool's futures cost a fifth of the time of a whole step of a thousand games, hence these bare queues.
    A process that was forked has none of its parent's threads: it starts its own with its first kernel.

    Args:
        rows: B.
        num_threads: threads, the caller among them.
    """

    def __init__(self, rows: int, num_threads: int) -> None:
        num_threads = min(num_threads, rows)
        helper = rows / (num_threads - 1 + CALLER_SHARE)
        bounds = [round(helper * i) for i in range(num_threads)] + [rows]
        self.chunks = list(pairwise(bounds))
        self._start()

    def run(self, kernel: Callable[..., None], *arguments: Any) -> None:
        """kernel(first, last, *arguments) for every chunk; the first error of any is raised when all are done.

        An interrupt is raised when all are done as well: no helper still writes to the arrays of the next kernel.
        """
        if not self._tasks:  # as of one game through PettingZoo: no helper, so no queue
            kernel(*self.chunks[0], *arguments)
            return
        if self._process != os.getpid():
            self._start()
        # Both are this call's own, so what an interrupt leaves in them is never taken for the answer to the next.
        ended: SimpleQueue[None] = SimpleQueue()
        results: list[BaseException | None] = [_RUNNING] * len(self._tasks)
        asked = 0
        error: BaseException | None = None
        try:
            for i, tasks in enumerate(self._tasks):
                tasks.put((kernel, (*self.chunks[i], *arguments), results, i, ended))
                asked = i + 1
            kernel(*self.chunks[-1], *arguments)
        except BaseException as raised:
            error = raised
        while _RUNNING in results[:asked]:
            try:
                ended.get()
            except BaseException as raised:  # an interrupt
                error = raised
        error = error or next((each for each in results[:asked] if each is not None), None)
        if error is not None:
            raise error

    def _start(self) -> None:
        """Start the helpers, in the process that is to use them."""
        self._process = os.getpid()
        self._tasks: list[SimpleQueue[_Task | None]] = []
        for _ in self.chunks[:-1]:
            tasks: SimpleQueue[_Task | None] = SimpleQueue()
            Thread(target=_serve, args=(tasks,), name="rows", daemon=True).start()
            finalize(self, tasks.put, None)
            self._tasks.append(tasks)


_Task = tuple[Callable[..., None], tuple[Any, ...], list[BaseException | None], int, SimpleQueue[None]]
"""A kernel, its arguments, a list and a place in it for the error that it raises or None, and whom to tell the end."""

_RUNNING = BaseException("still running")


def _serve(tasks: SimpleQueue[_Task | None]) -> None:
    """A helper's life: run what comes, until None comes."""
    for kernel, arguments, results, place, ended in iter(tasks.get, None):
        try:
            kernel(*arguments)
        except BaseException as error:  # whatever it is, the caller has to hear of it
            results[place] = error
        else:
            results[place] = None
        ended.put(None)
