"""Speed of worlds on this machine, as `magrounding bench` measures it."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import magrounding as mg
from magrounding.envs.make import Game
from magrounding.machine import processor
from magrounding.threads import available_cores

WINDOWS = 5
DRAWN_STEPS = 64
"""Rows of actions drawn beforehand and played in turn: enough that games differ, few enough for the cache."""


@dataclass(frozen=True)
class Speed:
    """Something per second, over several windows: the median, the slowest and the fastest."""

    median: float
    slowest: float
    fastest: float

    @classmethod
    def of(cls, rates: Sequence[float]) -> Speed:
        return cls(statistics.median(rates), min(rates), max(rates))

    def __str__(self) -> str:
        return f"{self.median:,.0f} /s  ({self.slowest:,.0f} … {self.fastest:,.0f})"


def rates_in_turn(plays: Sequence[Callable[[], int]], seconds: float) -> list[tuple[float, ...]]:
    """Return the rate of each of several in each window, in which they take turns: the machine slows all of them.

    Each is called over and over, and returns how many steps it made; one window of warm-up is thrown away.
    """
    return [tuple(_rate(play, seconds / WINDOWS) for play in plays) for _ in range(WINDOWS + 1)][1:]


def _rate(play: Callable[[], int], seconds: float) -> float:
    start = time.perf_counter()
    end, steps = start + seconds, 0
    while (now := time.perf_counter()) < end or not steps:
        steps += play()
    return steps / (now - start)


def vector_rates(
    games: Game, num_envs: int, threads: int, workers: Sequence[int | str], seconds: float
) -> list[tuple[float, ...]]:
    """Env steps/s of `make_vec` with each of several `workers`, in windows of `rates_in_turn`."""
    with ExitStack() as stack:

        def player(workers: int | str) -> Callable[[], int]:
            vec = games.make_vec(num_envs, num_threads=threads, workers=workers)
            stack.enter_context(closing(vec))
            shape = (DRAWN_STEPS, num_envs, vec.num_agents)
            actions = np.random.default_rng(0).integers(0, vec.spec.num_actions, shape)
            vec.reset(seed=0)

            def play() -> int:
                for row in actions:
                    vec.step(row)
                return DRAWN_STEPS * num_envs

            return play

        return rates_in_turn([player(each) for each in workers], seconds)


def single_speed(games: Game, seconds: float) -> Speed:
    """Env steps/s of one game through PettingZoo, resets among them as they come."""
    game, num_actions = games.make(), games.spec.num_actions
    choices = np.random.default_rng(0).integers(0, num_actions, (DRAWN_STEPS, game.max_num_agents)).tolist()
    actions = [dict(zip(game.possible_agents, row, strict=True)) for row in choices]
    game.reset(seed=0)

    def play() -> int:
        for row in actions:
            game.step({agent: row[agent] for agent in game.agents})
            if not game.agents:
                game.reset()
        return DRAWN_STEPS

    with closing(game):
        return Speed.of([rate for (rate,) in rates_in_turn([play], seconds)])


def creation_cost(env: str, options: Mapping[str, Any]) -> dict[str, float]:
    """Seconds and megabytes that one game takes until its first observation; for a process of its own."""
    before = _peak_memory()
    start = time.perf_counter()
    game = mg.make(env, **options)
    created = time.perf_counter()
    game.reset(seed=0)
    ready = time.perf_counter()
    game.close()
    return {
        "create_seconds": created - start,
        "first_reset_seconds": ready - created,
        "megabytes": (_peak_memory() - before) / 2**20,
    }


def machine() -> dict[str, Any]:
    """Describe the machine that the numbers were measured on."""
    from magrounding.agents.weights import versions  # torch, which a world's own memory has nothing of

    return {
        "system": platform.platform(),
        "processor": processor(),
        "cores": available_cores(),
        "load_average": list(os.getloadavg()),
        **versions(),
    }


def _peak_memory() -> int:
    """Bytes this process has had in memory at most."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count what the parent process had used when this one was forked
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
