"""Success on every scene of ALFWorld by type of task: `python -m benchmarks.alfworld_scenes --run runs/alfworld`.

Each scene of a split is played once: by the teams of a run, one for each seed, greedy and sampled, by the same teams
with another game's goal and with none, by a random player and by the scripted expert.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch

import magrounding as mg
from magrounding.cli.command import CommandLine, items, program
from magrounding.cli.train import seeds_of
from magrounding.errors import check_choice
from magrounding.experiment.config import read_config
from magrounding.single.alfworld import SPLITS, TASKS, ALFWorld
from magrounding.single.alfworld.games import shipped_scenes
from magrounding.teams.actor import Actor, make_expert
from magrounding.teams.episodes import quotas
from magrounding.teams.evaluate import ShuffledManuals, play
from magrounding.teams.loading import load_team
from magrounding.teams.scripted import random_team
from magrounding.vector import VectorEnv

GOAL = "goal"


@dataclass(frozen=True)
class Arguments:
    """Let a run's teams play every scene of the package, and print how often they win by type of task."""

    run: Path
    """The run folder."""
    splits: str = "train,valid,test"
    """Splits separated by commas."""
    rows: int = 8
    """Games at once."""
    seeds: str | None = None
    """Seeds of the run whose teams play, separated by commas. (default: all of the run)"""


class WithoutGoal(ShuffledManuals):
    """A team to which all goals are blank."""

    def act(
        self, obs: Mapping[str, Any], memory: Any, info: Any = None, greedy: bool = True, **rows: Any
    ) -> tuple[Any, Any]:
        goals = obs[self._text]
        blank = info and {**info, "document": np.zeros(len(goals), np.int64)}
        return self._team.act({**obs, self._text: np.zeros_like(goals)}, memory, blank, greedy, **rows)


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play, and print a table for each split."""
    torch.set_num_threads(1)
    seeds = read_config(arguments.run).seeds if arguments.seeds is None else seeds_of(arguments.seeds)
    teams = [load_team(arguments.run, seed) for seed in seeds]
    for split in items(arguments.splits):
        check_choice("split", split, SPLITS)
        tasks = np.array([scene.task for scene in shipped_scenes(split)])
        print(f"{split}: {len(tasks)} scenes\n\n| who | all | {' | '.join(TASKS)} |\n|{'---|' * (len(TASKS) + 2)}")
        for who, won in results(teams, split, arguments.rows):
            rates = [won.mean(1), *(won[:, tasks == task].mean(1) for task in TASKS)]
            print(f"| {who} | {' | '.join(map(_over_seeds, rates))} |", flush=True)
        print()


def _over_seeds(rates: np.ndarray) -> str:
    """Mean, and standard deviation where there are several."""
    return f"{rates.mean():.3f}" + (f" ± {rates.std(ddof=1):.3f}" if len(rates) > 1 else "")


def results(teams: Sequence[Actor], split: str, rows: int) -> Iterator[tuple[str, np.ndarray]]:
    """(who, bool [players, scenes] won) of the teams in each way of playing, of a random player and of the expert."""
    with closing(every_scene(split, rows)) as vec:
        players: dict[str, tuple[Sequence[Actor], bool]] = {
            "greedy": (teams, True),
            "sampled": (teams, False),
            "greedy, goal of another game": ([ShuffledManuals(team, GOAL) for team in teams], True),
            "greedy, no goal": ([WithoutGoal(team, GOAL) for team in teams], True),
            "random": ([random_team(vec)], False),
            "expert": ([make_expert(vec)], True),
        }
        scenes = len(shipped_scenes(split))
        for who, (actors, greedy) in players.items():
            yield who, np.stack([play(actor, vec, scenes, seed=0, greedy=greedy).won for actor in actors])


def every_scene(split: str, rows: int) -> VectorEnv:
    """Games of which each row plays scenes of its own, in the order in which `play` notes its results."""
    from magrounding.single.alfworld.env import ALFWorldEnv

    scenes = len(shipped_scenes(split))
    _, first = quotas(scenes, rows)

    class InTurn(ALFWorldEnv):
        """The scenes from a number on, anew whenever the seed is that of the first game."""

        row, turn, begin = -1, 0, None

        def reset(
            self, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, dict[str, Any]]]:
            if self.row < 0:
                self.row, self.begin = next(number), seed
            self.turn = int(first[self.row]) if seed == self.begin else self.turn + 1
            return super().reset(seed, options)

        def _choose(self, seed: int, episode: int) -> int:
            return self.turn % scenes

    number = count()  # rows begin in their order
    return mg.vectorize(lambda: InTurn(ALFWorld(split=split)), rows)


main = program("python -m benchmarks.alfworld_scenes", __name__)

if __name__ == "__main__":
    sys.exit(main())
