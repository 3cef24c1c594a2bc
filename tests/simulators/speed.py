"""How much faster workers are, and what a step costs beside the simulator: `python -m tests.simulators.speed`."""

from __future__ import annotations

import statistics
import time

import numpy as np

from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Busy


def microseconds(vec, steps):
    """Of one step."""
    actions = np.zeros((vec.num_envs, vec.num_agents), np.int64)
    start = time.perf_counter()
    for _ in range(steps):
        vec.step(actions)
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


if __name__ == "__main__":
    for simulator, num_envs, steps in ((0, 2, 400), (0, 8, 400), (0, 64, 100), (50, 8, 200), (200, 8, 100)):
        serial, process, *ratios = compare(simulator, num_envs, steps)
        print(
            f"{num_envs} games of {simulator} µs: serial {serial:.0f} µs a step, two workers {process:.0f} µs; "
            "ratio {:.2f} ({:.2f} … {:.2f})".format(*ratios)
        )
