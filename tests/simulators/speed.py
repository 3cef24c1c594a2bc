"""How much faster workers are, and what a step costs beside the simulator: `python -m tests.simulators.speed`."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import numpy as np

import magrounding as mg
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Busy


def microseconds(vec, steps):
    """Of one step."""
    actions = np.zeros((vec.num_envs, vec.num_agents), np.int64)
    start = time.perf_counter()
    for _ in range(steps):
        vec.step(actions)
    return (time.perf_counter() - start) / steps * 1e6


def microseconds_by_halves(vec, steps):
    """Of one step of the whole batch, played as training does: while one half is simulated the other is sent."""
    actions = [np.zeros((group.stop - group.start, vec.num_agents), np.int64) for group in vec.groups]
    start = time.perf_counter()
    for group, still in enumerate(actions):
        vec.send(still, group)
    for _ in range(steps - 1):
        for group, still in enumerate(actions):
            vec.receive(group)
            vec.send(still, group)
    vec.receive()
    return (time.perf_counter() - start) / steps * 1e6


def compare(simulator, num_envs, steps, rounds=9):
    """Median microseconds a step, serial and with two workers, measured in turns."""
    with vectorize(lambda: Busy(simulator), num_envs, 2) as many:
        alone = vectorize(lambda: Busy(simulator), num_envs)
        alone.reset(seed=0)
        many.reset(seed=0)
        times = [(microseconds(alone, steps), microseconds(many, steps)) for _ in range(rounds)]
    ratios = [serial / process for serial, process in times]
    return *map(statistics.median, zip(*times, strict=True)), statistics.median(ratios), min(ratios), max(ratios)


def two_workers_in_training(env, num_envs, steps, rounds, warm=0, **options):
    """Median, least and largest ratio of a step's time with one worker to that with two, played as training does."""
    with (
        mg.make_vec(env, num_envs, workers=1, **options) as one,
        mg.make_vec(env, num_envs, workers=2, **options) as two,
    ):
        for vec in (one, two):
            vec.reset(seed=0)
            if warm:
                microseconds_by_halves(vec, warm)
        ratios = [microseconds_by_halves(one, steps) / microseconds_by_halves(two, steps) for _ in range(rounds)]
    return statistics.median(ratios), min(ratios), max(ratios)


def say_two_workers(env, num_envs, steps, rounds, **options):
    """Print what `two_workers_in_training` measures."""
    ratios = two_workers_in_training(env, num_envs, steps, rounds, **options)
    print("two workers: {:.2f} times one ({:.2f} … {:.2f})".format(*ratios))


def children(pid="self"):
    """The processes that one has started, by number."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for file in files for child in file.read_text().split()}


def seconds_of(pid):
    """Seconds of processor time of a process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    for simulator, num_envs, steps in ((0, 2, 400), (0, 8, 400), (0, 64, 100), (50, 8, 200), (200, 8, 100)):
        serial, process, *ratios = compare(simulator, num_envs, steps)
        print(
            f"{num_envs} games of {simulator} µs: serial {serial:.0f} µs a step, two workers {process:.0f} µs; "
            "ratio {:.2f} ({:.2f} … {:.2f})".format(*ratios)
        )
