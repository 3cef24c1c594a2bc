"""Record games to learn from: `python -m benchmarks.demonstrations --env ma_rtfm --stage s1 --out demos.npz`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from benchmarks.command import run_command
from magrounding.agents.team import load_team
from magrounding.envs.render import ansi
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.pretrained import find_run
from magrounding.registry import env_entry, make_vec
from magrounding.threads import plan_threads, using
from magrounding.training.recording import RECORDING_SEED, StopRecording, record
from magrounding.training.settings import read_settings
from magrounding.training.teacher import make_expert
from magrounding.vector import WorldVectorEnv

ROWS = 256
"""Games that a program plays at once."""
_SEEDS_APART = 2**20
"""Rows that a recording can have before it meets the games of the next seed."""


@dataclass(frozen=True)
class Arguments:
    """Let the oracle, a trained team or a person play, and keep the games in a file to learn from."""

    env: str
    """Environment id, e.g. ma_rtfm."""
    stage: str
    """Stage or task of the games."""
    out: Path
    """File to write, e.g. demos.npz."""
    agents: int | None = None
    """Number of agents; the environment's own by default."""
    games: int = 1000
    """Games to play."""
    player: str = "oracle"
    """oracle, run:DIR (the team that a run trained on this stage) or keyboard (you)."""
    split: str = "train"
    """Split of the games; a run learns only from its own."""
    seed: int = 0
    """Other seeds record other games."""
    max_cycles: int = 80
    """Steps after which a game is over."""


class Keyboard:
    """A person who plays all agents of one game at the terminal, a line a step.

    Args:
        vec: the game.
    """

    def __init__(self, vec: WorldVectorEnv) -> None:
        self._vec = vec
        self._letters = {name[0]: action for action, name in enumerate(vec.action_names)}
        if len(self._letters) < len(vec.action_names) or "q" in self._letters:
            raise ConfigurationError(f"the actions of {vec.id} cannot be told apart by their first letters")

    def act(self, obs: Any, memory: None, info: Any, greedy: bool = True) -> tuple[np.ndarray, None]:
        """Show the game and ask for a letter for each living agent; StopRecording at q or the end of the input."""
        if info["done"][0]:
            print(f"\nThe game is {'won' if info['won'][0] else 'lost'}.")
        print(f"\n{ansi(self._vec.world.scene(0))}\n")
        living = np.flatnonzero(info["alive"][0]).tolist()
        names = ", ".join(f"{name[0]} {name}" for name in self._vec.action_names)
        prompt = f"a letter for each of agents {', '.join(map(str, living))} ({names}; q to stop): "
        while True:
            try:
                letters = "".join(input(prompt).lower().split())
            except (EOFError, KeyboardInterrupt):
                print()
                raise StopRecording from None
            if letters == "q":
                raise StopRecording
            if wrong := self._complaint(letters, living, obs["action_mask"][0]):
                print(wrong)
                continue
            actions = np.zeros((1, self._vec.num_agents), np.int64)
            actions[0, living] = [self._letters[letter] for letter in letters]
            return actions, None

    def _complaint(self, letters: str, living: list[int], mask: np.ndarray) -> str:
        """What is wrong with a line, or nothing."""
        if len(letters) != len(living):
            return f"expected {len(living)} letters, got {len(letters)}"
        for agent, letter in zip(living, letters, strict=True):
            if letter not in self._letters:
                return f"{letter!r} is no action"
            if not mask[agent, self._letters[letter]]:
                return f"agent {agent} cannot go {self._vec.action_names[self._letters[letter]]} there"
        return ""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = tyro.cli(Arguments, prog="python -m benchmarks.demonstrations")
    return run_command(lambda: make_demonstrations(arguments))


def make_demonstrations(arguments: Arguments) -> None:
    """Play, write the file, say what is in it."""
    if arguments.out.exists():
        raise CheckpointError(f"{arguments.out} exists already: name another file with --out")
    if arguments.games < 1:
        raise ConfigurationError(f"--games must be positive, got {arguments.games}")
    if not 0 <= arguments.seed < 2**31:
        raise ConfigurationError(f"--seed is an integer in [0, 2**31), got {arguments.seed}")
    options, make_player, played_by = _player(arguments)
    rows = 1 if arguments.player == "keyboard" else min(arguments.games, ROWS)
    vec = make_vec(arguments.env, rows, **options)
    with using(plan_threads(1, rows, cuda=False)):
        first = RECORDING_SEED + _SEEDS_APART * arguments.seed
        shown = record(vec, make_player(vec), arguments.games, first, played_by, tell=_Progress(arguments.games).tell)
    shown.save(arguments.out)
    size = arguments.out.stat().st_size / 1024
    results = f"games {len(shown.won):,}, steps {shown.steps:,}, win rate {shown.won.mean():.1%}, {size:,.1f} KiB"
    print(f"{arguments.out}: {results}")


def _player(arguments: Arguments) -> tuple[dict[str, Any], Callable[[WorldVectorEnv], Any], str]:
    """Options of the environment, who plays in a vector env of them, and how to call them."""
    entry = env_entry(arguments.env)
    options = {
        entry.stage_option: choose(f"stage of {arguments.env}", arguments.stage, entry.stages),
        "split": arguments.split,
        "max_cycles": arguments.max_cycles,
    }
    if entry.multi_agent:
        options["agents"] = entry.options["agents"] if arguments.agents is None else arguments.agents
    elif arguments.agents not in (None, 1):
        raise ConfigurationError(f"{arguments.env} is played by one agent, got {arguments.agents}")
    kind, _, folder = arguments.player.partition(":")
    if kind == "run" and folder:
        settings = read_settings(find_run(folder))
        if (settings.env, settings.agents) != (arguments.env, options.get("agents", 1)):
            raise CheckpointError(
                f"the run in {folder} plays {settings.env} with {settings.agents} agents, "
                f"not {arguments.env} with {options.get('agents', 1)}"
            )
        team = load_team(folder, stage=arguments.stage)
        return {**settings.env_options, **options}, lambda vec: team, f"{settings.agent} of {folder}"
    players = {"oracle": (make_expert, "oracle"), "keyboard": (Keyboard, "a person")}
    choose("player", arguments.player, (*players, "run:DIR"))
    return options, *players[arguments.player]


class _Progress:
    """A line for each tenth of the games."""

    def __init__(self, games: int) -> None:
        self._games, self._tenths = games, 0

    def tell(self, finished: int) -> None:
        tenths = 10 * finished // self._games
        if self._tenths < tenths < 10:
            print(f"{finished:,} of {self._games:,} games", flush=True)
        self._tenths = tenths


if __name__ == "__main__":
    sys.exit(main())
