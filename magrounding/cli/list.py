"""List what there is to train, play and load, by its ids: `magrounding list envs`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import tyro

from magrounding import extras
from magrounding.cli.command import CommandLine
from magrounding.errors import check_choice
from magrounding.experiment.presets import GENERAL
from magrounding.pretrained import ABOUT_FILE, PREFIX, find_run, pretrained_names
from magrounding.registry import AGENTS, ALGORITHMS, ENVS, PRESETS
from magrounding.storage import json_text, read_json

Row = dict[str, str]
"""Of one thing: heading → text, its id first."""
_SHOWN = 8
"""Stages of an environment that fit into a line."""


@dataclass(frozen=True)
class Arguments:
    """List environments, agents, algorithms, presets, trained teams and extras, and which extra is missing."""

    kind: Annotated[str | None, tyro.conf.Positional] = None
    """envs, agents, algorithms, presets, teams or extras. (default: all)"""
    json: bool = False
    """Print JSON: kind → rows."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print a table for each kind."""
    asked = KINDS if arguments.kind is None else [check_choice("kind", arguments.kind, KINDS)]
    listed = {kind: [*KINDS[kind]()] for kind in asked}
    if arguments.json:
        print(json_text(listed, indent=2))
    else:
        for kind, rows in listed.items():
            print("\n".join([kind, *aligned(rows), ""]))


def aligned(rows: list[Row]) -> list[str]:
    """Return a table of text: headings, then a line for each row."""
    lines = [[*rows[0]], *([*row.values()] for row in rows)] if rows else []
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  " + "  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def _envs() -> Iterator[Row]:
    for entry in ENVS.values():
        short = len(entry.stages) <= _SHOWN
        extra = getattr(entry.factory, "extra", "")
        yield {
            "id": entry.id,
            "agents": "any number" if entry.multi_agent else "1",
            "stages": ", ".join(entry.stages) if short else f"{len(entry.stages)} of {entry.stage_option}",
            "needs": f"extra {extra}, {extras.state(extra)}" if extra else "",
        }


def _agents() -> Iterator[Row]:
    for entry in AGENTS.values():
        yield {
            "id": entry.id,
            "built on": entry.built_on or "",
            "learns by": entry.algorithm or "any that trains policies",
        }


def _algorithms() -> Iterator[Row]:
    for entry in ALGORITHMS.values():
        yield {"id": entry.id, "trains": "agents made for it" if entry.own_agents else "any policy"}


def _presets() -> Iterator[Row]:
    for entry in PRESETS.values():
        yield {"id": entry.name, "env": entry.env, "agents": ", ".join(entry.agents) or "any other"}
    yield {"id": GENERAL, "env": "any", "agents": "any other"}


def _teams() -> Iterator[Row]:
    for name in pretrained_names():
        folder = find_run(PREFIX + name)
        about, entry = read_json(folder / ABOUT_FILE), ENVS.get(read_json(folder / "config.json")["env"])
        held_out = f"{entry.evaluation.reading_set}, greedy" if entry else ""  # its package may not be here
        won = about["win_rates"].get(held_out)
        shown = "" if won is None else f"{won:.1%} ({held_out})"
        yield {"id": PREFIX + name, "learnt by": about["learnt_by"], "won": shown}


def _extras() -> Iterator[Row]:
    for name in extras.extras():
        yield {"id": name, "for": extras.FEATURES.get(name, ""), "state": extras.state(name)}


KINDS = {
    "envs": _envs,
    "agents": _agents,
    "algorithms": _algorithms,
    "presets": _presets,
    "teams": _teams,
    "extras": _extras,
}
