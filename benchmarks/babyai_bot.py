"""Count how often minigrid's bot gives up off its path: `python -m benchmarks.babyai_bot --games 60`.

In every game of every level half of the steps are a random action, the others the bot's. Once it has given up it labels
every action until the episode ends. Prints a table.
"""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

import magrounding as mg
from magrounding.cli.command import CommandLine, items, program
from magrounding.experiment.tables import table
from magrounding.registry import env_entry


@dataclass(frozen=True)
class Arguments:
    """Count the games in which the bot gives up, and the states in which it labels every action."""

    games: int = 60
    """Games of each level, of the split train."""
    levels: str = ",".join(env_entry("babyai").stages)
    """Which, separated by commas."""
    seed: int = 0
    """Seed of the games and of the random actions."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Measure and print."""
    rows = []
    for level in items(arguments.levels):
        lost, states, without = measure(level, arguments.games, arguments.seed)
        rows.append([level, f"{lost} of {arguments.games}", f"{states:,}", f"{without / states:.1%}"])
        print(*rows[-1], file=sys.stderr, flush=True)
    print(table(["level", "games in which it gives up", "states", "of these without advice"], rows))


def measure(level: str, games: int, seed: int = 0) -> tuple[int, int, int]:
    """Return the games in which the bot gives up, all states, and those in which it labels every action."""
    rng, lost, states, without = np.random.default_rng(seed), 0, 0, 0
    env: Any = mg.make("babyai", level=level)
    with closing(env):
        for game in range(games):
            env.reset(seed=seed * games + game)
            silent = False
            while env.agents:
                labels = env.best_actions()[0]
                silent = bool(labels.all())
                states, without = states + 1, without + silent
                advised = rng.random() < 0.5
                env.step({"agent_0": int(labels.argmax() if advised and not silent else rng.integers(len(labels)))})
            lost += silent
    return lost, states, without


main = program("python -m benchmarks.babyai_bot", __name__)

if __name__ == "__main__":
    sys.exit(main())
