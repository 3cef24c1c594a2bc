"""What teams win that tell nothing, anything, the best, or need not: `python -m benchmarks.floors --out FOLDER`.

No team is trained: scripted ones play the same games of `eval` in each stage of multi-agent RTFM, reading and number of
agents. Written after each of them: `floors.md`, and `floors.rows.json` for pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True)
class Arguments:
    """Measure floors and ceilings of games whose manual is split, without a trained team."""

    out: Path
    """Folder of floors.md and floors.rows.json."""
    stages: str = "s2g,s4,s5"
    """Stages of ma_rtfm, separated by commas, like all that follow."""
    sets: str = "eval,eval_10x10"
    """Evaluation sets."""
    readings: str = "kind,half,librarian"
    """Who reads what."""
    agents: str = "2,3"
    """Numbers of agents, a librarian among them."""
    tells: str = "1,2"
    """Lines that an agent may tell, of those who tell any."""
    games: Count = 1000
    """Games of each team."""


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
    several = (arguments.stages, arguments.sets, arguments.readings, arguments.agents)
    for stage, name, reading, agents in product(*map(items, several)):
        changed = env_entry("ma_rtfm").evaluation.sets[name]
        game = Game.of("ma_rtfm", {"stage": stage, "reading": reading, "agents": int(agents), **changed})
        for player, (team, options) in players(game, items(arguments.tells)).items():
            won = evaluate(team, game, options, arguments.games).won
            place = {"stage": stage, "set": name, "row": f"{reading}, {agents} agents", "player": player}
            share = mean_interval(won)
            rows.append({**place, "metric": "win_rate", "games": arguments.games, **share._asdict()})
        write_rows(arguments.out / "floors.md", rows, env="ma_rtfm", command=str(line))
        write_atomic(arguments.out / "floors.md", report(rows, str(line)))


def players(game: Game, tells: Sequence[str]) -> dict[str, tuple[Callable[[VectorEnv], Any], Mapping[str, Any]]]:
    """The teams, and what is different in their games."""
    return {
        SILENT: (partial(make_expert, oracle=SILENT), {}),
        **{f"any {count}": (Chatter, {"tells": int(count)}) for count in tells},
        ORACLE: (make_expert, {}),
        ALL: (make_expert, game.whole),
    }


def report(rows: Sequence[Mapping[str, Any]], command: str) -> str:
    """A table with a line for each place, a column for each team."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        place = row["stage"], row["set"], row["row"]
        lines.setdefault(place, [*place]).append(percent(row["value"]))
    return page(
        "# Floors and ceilings of split manuals",
        f"Games won of {rows[0]['games']:,}; no team is trained. **silent**: an oracle that guesses and tells nothing. "
        "**any k**: the same, but each agent tells k of its lines, drawn at random, where standing still costs little. "
        "**oracle**: one that tells what is useful, and waits. **all**: the oracle of the same games in which all read "
        "all.",
        table(["stage", "set", "reading", *dict.fromkeys(row["player"] for row in rows)], lines.values()),
        f"Command: {code(command)}",
    )


main = program("python -m benchmarks.floors", __name__)

if __name__ == "__main__":
    sys.exit(main())
