"""Number of threads that compute, decided in one place, and what is computed side by side.

Torch computes each operation with one thread. Its pool of threads waits by spinning, so where another program needs a
core, every small operation waits for a thread that is not running: one busy process left 3 to 30 % of the speed
(docs/performance.md; `python -m benchmarks.busy` measures your machine). What is divided among threads here are larger
pieces, which sleep when they have nothing to do: agents, parts of a minibatch (whole games), rows of a batch.

`using(plan)` says what a process may use; `map_agents` and `map_parts` run things side by side within it, and one
after the other without it. Gradients of the parts of a minibatch are added in the order of the parts, so a run repeats
itself bit for bit with the same number of parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar
from weakref import finalize

from threadpoolctl import threadpool_limits

T = TypeVar("T")
R = TypeVar("R")

ROWS_PER_WORLD_THREAD = 512
"""Rows of a batch that make another simulator thread worth waking."""
GAMES_PER_PART = 8
"""Games of a minibatch that are worth a thread of their own: with fewer, Python's share of the time is too large."""


@dataclass(frozen=True)
class ThreadPlan:
    """Division of a process's cores.

    Attributes:
        cores: how many it takes.
        agents: Python threads, each acting and learning for one agent at a time.
        parts: of a minibatch, for each agent that learns; computed side by side as far as there are cores.
        world: threads of the simulator.
    """

    cores: int = 1
    agents: int = 1
    parts: int = 1
    world: int = 1


_QUOTA = "the quota of its container"


def available_cores() -> int:
    """Cores this process may use, by the tightest of `core_limits`."""
    return min(core_limits().values())


def core_limits(root: Path = Path("/")) -> dict[str, int]:
    """Each limit of this process by its name: 1 core or more; `root` has the folders `proc` and `sys`."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = {"its affinity": affinity}
    slurm = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE") or ""
    if slurm.isdecimal():
        limits["Slurm"] = max(1, int(slurm))
    with suppress(OSError, ValueError):
        groups = (root / "proc/self/cgroup").read_text().splitlines()
        for _, kinds, path in (line.split(":", 2) for line in groups):
            mount = root / "sys/fs/cgroup" / kinds
            folder = mount / path.strip("/")
            for each in (folder, *folder.parents)[: len(folder.parts) - len(mount.parts) + 1]:
                with suppress(OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
                    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if kinds else ("cpu.max",)
                    quota, period = map(int, " ".join((each / name).read_text() for name in names).split())
                    if quota > 0:  # of a group, or of one that holds it
                        limits[_QUOTA] = min(limits.get(_QUOTA, affinity), ceil(quota / period))
    return limits


def divide_cores(jobs: int, threads: int | None) -> tuple[int, int]:
    """Share this process's cores between processes that run side by side.

    Args:
        jobs: how many; 0: as many as the cores allow.
        threads: of each, if that is decided.

    Returns:
        How many processes, and how many threads each has.
    """
    cores = available_cores()
    jobs = jobs or max(1, cores // (threads or 1))
    return jobs, threads or max(1, cores // jobs)


def plan_threads(
    num_agents: int,
    num_envs: int,
    *,
    learners: int | None = None,
    threads: int | None = None,
    parts: int | None = None,
    cuda: bool = False,
) -> ThreadPlan:
    """Share the cores between agents, the parts of their minibatches, and the simulator.

    With several agents every agent gets a thread, even where that is more than there are cores: three agents on two
    cores finish together after 1.5 turns, while two threads would need 2. On a GPU the threads only launch kernels.

    Args:
        num_agents, num_envs: agents that act, rows of the simulator.
        learners: networks that learn, one for each agent by default; 1 where agents share one.
        threads: cores to share; by default those this process may run on.
        parts: of a minibatch, where a run that goes on has settled how many: they decide the last bits of its sums.
        cuda: whether the networks live on a GPU.
    """
    cores = threads or available_cores()
    world = max(1, min(cores, num_envs // ROWS_PER_WORLD_THREAD))
    parts = parts or (1 if cuda else max(1, cores // (learners or num_agents)))
    return ThreadPlan(cores, num_agents if cores > 1 else 1, parts, world)


@dataclass(frozen=True)
class _Active:
    """A plan and what runs things side by side by it."""

    plan: ThreadPlan = ThreadPlan()
    agents: Callable[..., Iterable[Any]] = map
    parts: Callable[..., Iterable[Any]] = map


_active = _Active()


@contextmanager
def using(plan: ThreadPlan) -> Iterator[None]:
    """Compute as planned until the end: `map_agents`, `map_parts`, and torch with one thread for an operation."""
    import scipy.linalg.cython_blas  # noqa: F401  compiled kernels multiply by it; it has to be there to be limited
    import torch

    global _active  # threads belong to the process, as torch's do
    before, torch_before = _active, torch.get_num_threads()
    with ExitStack() as stack:
        # OpenMP counts threads for each thread that calls it: what is set here does not reach the pools' threads.
        one = "", torch.set_num_threads, (1,)
        pools = [
            stack.enter_context(ThreadPoolExecutor(count, *one)).map if count > 1 else map
            for count in (plan.agents, plan.cores if plan.parts > 1 else 1)
        ]
        stack.enter_context(threadpool_limits(1, "blas"))  # products within kernels, of which every part runs its own
        torch.set_num_threads(1)
        _active = _Active(plan, *pools)
        try:
            yield
        finally:
            _active = before
            torch.set_num_threads(torch_before)


def active_plan() -> ThreadPlan:
    """The plan in use; one thread of each kind where there is none."""
    return _active.plan


def map_agents(function: Callable[[T], R], items: Iterable[T]) -> Iterable[R]:
    """function(item) for every agent's, side by side as planned; results in the order of the items."""
    return _active.agents(function, items)


def map_parts(function: Callable[[T], R], items: Iterable[T]) -> Iterable[R]:
    """function(item) for every part of a minibatch, side by side as planned; results in the order of the items."""
    return _active.parts(function, items)


CALLER_SHARE = 1.16
"""The calling thread's rows for each row of a helper: it starts earlier, and would else sleep until the helper ends."""


class RowThreads:
    """Threads that run a kernel over a batch, a chunk of rows each; kernels take (first, last, …) and release the GIL.

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
