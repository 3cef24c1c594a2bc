"""What teams win that tell nothing, anything, the best, or need not: `python -m benchmarks.floors --out FOLDER`.

No team is trained: scripted ones play the same games of `eval` in each stage of multi-agent RTFM, reading and number of
agents. Written after each of them: `floors.md`, and `floors.rows.json` for pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.cli.command import CommandLine, items, program
from magrounding.envs.make import Game
from magrounding.envs.rtfm.arrays import FIRST_TELL, STAY
from magrounding.envs.rtfm.informed import TELLING_COST
from magrounding.envs.rtfm.oracle import SilentOracle
from magrounding.experiment.evaluate import ALL, SILENT
from magrounding.experiment.rows import write_rows
from magrounding.experiment.tables import code, page, percent, table
from magrounding.registry import env_entry
from magrounding.schema import Count
from magrounding.statistics import mean_interval
from magrounding.storage import write_atomic
from magrounding.teams.actor import make_expert
from magrounding.teams.evaluate import evaluate
from magrounding.teams.lineup import ORACLE
from magrounding.vector import VectorEnv

SETS, READINGS, AGENTS, TELLS = ("eval", "eval_10x10"), ("kind", "half", "librarian"), (2, 3), (1, 2)
"""Evaluation sets; who reads what; agents, a librarian among them; lines that each tells, of those who tell any."""


@dataclass(frozen=True)
class Arguments:
    """Measure floors and ceilings of games whose manual is split, without a trained team."""

    out: Path
    """Folder of floors.md and floors.rows.json."""
    stages: str = "s2g,s4,s5"
    """Stages of ma_rtfm, separated by commas."""
    games: Count = 1000
    """Games of each team in each place."""


class Chatter(SilentOracle):
    """Tells any of its lines where standing still costs as little as where the oracle tells, and guesses the rest."""

    def _label(self, rows: np.ndarray) -> None:
        super()._label(rows)
        labels, legal = self._labels[rows], self._world.observation["action_mask"][rows] == 1
        speaks = legal[..., FIRST_TELL:].any(-1) & (self._costs[rows][..., STAY] <= TELLING_COST)
        labels[speaks] = False
        labels[..., FIRST_TELL:] = legal[..., FIRST_TELL:] & speaks[..., None]
        self._labels[rows] = labels


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play and write, a stage, set, reading and number of agents at a time."""
    rows: list[dict[str, Any]] = []
    lines: list[list[str]] = []
    for stage, name, reading, agents in product(items(arguments.stages), SETS, READINGS, AGENTS):
        place = {"stage": stage, "set": name, "row": f"{reading}, {agents} agents"}
        changed = env_entry("ma_rtfm").evaluation.sets[name]
        game = Game.of("ma_rtfm", {"stage": stage, "reading": reading, "agents": agents, **changed})
        won = {who: evaluate(*team, arguments.games).won for who, team in teams(game).items()}
        shares = {who: mean_interval(outcomes) for who, outcomes in won.items()}
        rows += [{**place, "player": who, "metric": "win_rate", **share._asdict()} for who, share in shares.items()]
        lines.append([*place.values(), *(percent(share.value) for share in shares.values())])
        about = {"env": "ma_rtfm", "games": arguments.games, "command": str(line)}
        write_rows(arguments.out / "floors.md", rows, **about)
        text = page(
            "# Floors and ceilings of split manuals",
            f"Games won of {arguments.games:,}; no team is trained. **silent**: an oracle that guesses and tells "
            "nothing. **any k**: the same, but each agent tells k of its lines, drawn at random, where standing still "
            "costs little. **oracle**: one that tells what is useful, and waits. **all**: the oracle of the same games "
            "in which all read all.",
            table(["stage", "set", "reading", *won], lines),
            f"Command: {code(str(line))}",
        )
        write_atomic(arguments.out / "floors.md", text)


def teams(game: Game) -> dict[str, tuple[Callable[[VectorEnv], Any], Game, Mapping[str, Any]]]:
    """Teams, their games, and what is different in these."""
    return {
        SILENT: (partial(make_expert, oracle=SILENT), game, {}),
        **{f"any {count}": (Chatter, game, {"tells": count}) for count in TELLS},
        ORACLE: (make_expert, game, {}),
        ALL: (make_expert, game, game.whole),
    }


main = program("python -m benchmarks.floors", __name__)

if __name__ == "__main__":
    sys.exit(main())
