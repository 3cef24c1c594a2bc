"""Steps a second of other projects' simulators beside ours: `python -m benchmarks.peers`.

All play random actions, in turns, so that whatever else the machine does hits them alike. EnvPool is no dependency:
`pip install envpool`.
"""

from __future__ import annotations

import contextlib
import io
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np

import magrounding as mg
from magrounding.cli.command import CommandLine, items, program
from magrounding.errors import ConfigurationError
from magrounding.experiment.tables import table
from magrounding.single.babyai.env import make_game

Step = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Arguments:
    """Measure steps a second of BabyAI in minigrid, in EnvPool and here."""

    levels: str = "GoToLocal,GoTo,PutNextLocal,BossLevel"
    """Which, separated by commas."""
    games: str = "64,256"
    """Numbers of games at once, separated by commas."""
    threads: int = 2
    """Threads of EnvPool, and worker processes here."""
    seconds: float = 3.0
    """Of each turn."""
    turns: int = 7
    """Of each simulator."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Measure and print."""
    if find_spec("envpool") is None:
        raise ConfigurationError("EnvPool is not installed: pip install envpool")
    rows, rates = [], {}
    for level in items(arguments.levels):
        for games in map(int, items(arguments.games)):
            peers = players(level, games, arguments.threads)
            rates = {name: list[float]() for name in peers}
            for _ in range(arguments.turns):
                for name, step in peers.items():
                    rates[name].append(rate(step, games, arguments.seconds))
            ratios = [ours / peer for ours, peer in zip(rates["one process"], rates["EnvPool"], strict=True)]
            middle = [f"{statistics.median(each):,.0f}" for each in rates.values()]
            rows.append([level, str(games), *middle, f"{statistics.median(ratios):.2f}"])
            print(*rows[-1], "load", os.getloadavg()[0], file=sys.stderr, flush=True)
    print(table(["level", "games", *rates, "one process / EnvPool"], rows))


def players(level: str, games: int, threads: int) -> dict[str, Step]:
    """A function for each simulator, which plays actions [B] in all of its games."""
    import envpool  # pyright: ignore[reportMissingImports]

    pool = envpool.make(f"BabyAI-{level}-v0", env_type="gymnasium", num_envs=games, num_threads=threads)
    minigrid = gymnasium.vector.SyncVectorEnv([lambda: make_game(level)] * games)
    here, workers = (mg.make_vec("babyai", games, level=level, workers=count) for count in (0, threads))
    with contextlib.redirect_stdout(io.StringIO()):  # minigrid prints what it rejects
        for each in (pool, minigrid, here, workers):
            each.reset()
    return {
        "minigrid": minigrid.step,
        "EnvPool": pool.step,
        "one process": lambda actions: here.step(actions[:, None]),
        "workers": lambda actions: workers.step(actions[:, None]),
    }


def rate(step: Step, games: int, seconds: float) -> float:
    """Steps a second of all games together, with random actions."""
    rng, steps, began = np.random.default_rng(), 0, time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):  # minigrid prints what it rejects
        while time.perf_counter() - began < seconds:
            step(rng.integers(7, size=games))
            steps += games
    return steps / (time.perf_counter() - began)


main = program("python -m benchmarks.peers", __name__)

if __name__ == "__main__":
    sys.exit(main())
