"""Speed of training where other programs need the cores: `python -m benchmarks.busy`.

It trains as the command of the README does (three agents, preset `demo`, S1) in a process of its own, and measures the
environment steps a second in slices: alone, beside a process that computes without pause, and beside one of higher
priority (the training process has niceness 10 then, the other 0). Slices of all kinds take turns, so what else the
machine does slows all of them.

`--spinning` also measures a training process whose operations are shared by torch's own pool of threads, which is what
torch does where nothing else is said: the reason why this package computes with one thread for an operation.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING

from magrounding.cli.command import CommandLine, program
from magrounding.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

NICENESS = 10
"""Niceness of the training process; a process beside it has the same, or 0: then it is served first."""
KINDS = {"alone": None, "beside one of equal priority": NICENESS, "beside one of higher priority": 0}
"""Measurement → niceness of the process beside it."""
WARM_UP = 8
"""Rounds of playing and learning before the first slice."""
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Arguments:
    """Measure how fast training is beside other processes."""

    env: str = "ma_rtfm"
    """Environment id."""
    agents: int | None = 3
    """Number of agents; of environments of one agent it is left out."""
    preset: str = "demo"
    """Algorithm, network and budget."""
    stage: str | None = None
    """Stage to train. (default: the first)"""
    threads: int | None = None
    """Cores that training shares. (default: those that this process may run on)"""
    rounds: int = 5
    """Slices of each kind."""
    seconds: float = 4.0
    """Seconds of a slice."""
    spinning: bool = False
    """Measure torch's own pool of threads, too."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Measure and print."""
    if arguments.rounds < 1 or arguments.seconds <= 0:
        raise ConfigurationError("--rounds and --seconds are positive")
    if not hasattr(os, "nice"):
        raise ConfigurationError("this system has no niceness, by which priorities are told here")
    plans = {"our threads": False, **({"torch's pool": True} if arguments.spinning else {})}
    trainings = {name: _Training(arguments, spinning) for name, spinning in plans.items()}
    speeds: dict[tuple[str, str], list[float]] = {(name, kind): [] for name in trainings for kind in KINDS}
    try:
        print(f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.2f}")
        for _ in range(arguments.rounds):
            for kind, niceness in KINDS.items():
                with _computing(niceness):
                    for name, training in trainings.items():
                        speeds[name, kind].append(training.speed(arguments.seconds))
    finally:
        for training in trainings.values():
            training.end()
    for name in trainings:
        alone = statistics.median(speeds[name, "alone"])
        for kind in KINDS:
            each = speeds[name, kind]
            print(
                f"{name:12}  {kind:30} {statistics.median(each):7,.0f} steps/s ({min(each):,.0f} … {max(each):,.0f}), "
                f"{statistics.median(each) / alone:.2f} of alone"
            )


class _Training:
    """A process that trains when it is asked to."""

    def __init__(self, arguments: Arguments, spinning: bool) -> None:
        self._ours, theirs = _SPAWN.Pipe()
        self._process: SpawnProcess = _SPAWN.Process(target=_train, args=(theirs, arguments, spinning), daemon=True)
        self._process.start()
        theirs.close()
        self._receive()

    def speed(self, seconds: float) -> float:
        """Environment steps a second of a slice."""
        self._ours.send(seconds)
        return self._receive()

    def end(self) -> None:
        self._process.kill()

    def _receive(self) -> float:
        try:
            answer = self._ours.recv()
        except EOFError:
            raise ConfigurationError("the process that trains has ended; what it said stands above") from None
        if isinstance(answer, str):
            raise ConfigurationError(answer)
        return answer


def _train(channel: Connection, arguments: Arguments, spinning: bool) -> None:
    """Train a slice for each number of seconds that comes; its steps a second go back."""
    import torch

    from magrounding.errors import MagroundingError
    from magrounding.experiment.config import make_config
    from magrounding.experiment.stage import StageSession
    from magrounding.threads import ThreadPlan, available_cores, plan_threads, using

    os.nice(NICENESS)
    try:
        stages = None if arguments.stage is None else (arguments.stage,)
        settings = make_config(arguments.env, None, arguments.agents, arguments.preset, stages, (0,))
        shares = {"learners": settings.num_learners, "threads": arguments.threads}
        plan = ThreadPlan() if spinning else plan_threads(settings.agents, settings.max_envs, **shares)
        with using(plan):
            if spinning:
                torch.set_num_threads(arguments.threads or available_cores())
            session = StageSession(settings.resolve().segments[0], 0, torch.device("cpu"))
            session.start()
            steps = 0
            for _ in range(WARM_UP):
                session.iterate(steps)
                steps += session.steps_per_update
            channel.send(0.0)
            while True:
                seconds, start, before = channel.recv(), time.perf_counter(), steps
                while time.perf_counter() - start < seconds:
                    session.iterate(steps)
                    steps += session.steps_per_update
                channel.send((steps - before) / (time.perf_counter() - start))
    except MagroundingError as error:
        channel.send(str(error))


@contextmanager
def _computing(niceness: int | None) -> Iterator[None]:
    """A process of that niceness computes without pause; None: there is none."""
    if niceness is None:
        yield
        return
    process = _SPAWN.Process(target=_compute, args=(niceness,), daemon=True)
    process.start()
    time.sleep(1.0)  # until it computes
    try:
        yield
    finally:
        process.kill()
        process.join()


def _compute(niceness: int) -> None:
    os.nice(niceness)
    while True:
        pass


main = program("python -m benchmarks.busy", __name__)

if __name__ == "__main__":
    sys.exit(main())
