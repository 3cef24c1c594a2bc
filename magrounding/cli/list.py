"""List what there is to train, play and load, by its ids: `magrounding list envs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

Rows = list[dict[str, str]]
"""A row for each thing: heading → text, its id first."""
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
    listed = {kind: KINDS[kind]() for kind in asked}
    if arguments.json:
        print(json_text(listed, indent=2))
        return
    for kind, rows in listed.items():
        print("\n".join([kind, *aligned(rows), ""]))


def aligned(rows: Rows) -> list[str]:
    """Return a table of text: headings, then a line for each row."""
    if not rows:
        return []
    table = [{name: name for name in rows[0]}, *rows]
    widths = {name: max(len(row[name]) for row in table) for name in rows[0]}
    return ["  " + "  ".join(row[name].ljust(widths[name]) for name in row).rstrip() for row in table]


def _envs() -> Rows:
    rows = []
    for entry in ENVS.values():
        short = len(entry.stages) <= _SHOWN
        extra = getattr(entry.factory, "extra", "")
        rows.append(
            {
                "id": entry.id,
                "agents": "any number" if entry.multi_agent else "1",
                "stages": ", ".join(entry.stages) if short else f"{len(entry.stages)} of {entry.stage_option}",
                "needs": f"extra {extra}, {extras.state(extra)}" if extra else "",
            }
        )
    return rows


def _agents() -> Rows:
    return [
        {
            "id": entry.id,
            "built on": entry.built_on or "",
            "learns by": entry.algorithm or "any that trains policies",
        }
        for entry in AGENTS.values()
    ]


def _algorithms() -> Rows:
    return [
        {"id": entry.id, "trains": "agents made for it" if entry.own_agents else "any policy"}
        for entry in ALGORITHMS.values()
    ]


def _presets() -> Rows:
    rows = [
        {"id": entry.name, "env": entry.env, "agents": ", ".join(entry.agents) or "any other"}
        for entry in PRESETS.values()
    ]
    return [*rows, {"id": GENERAL, "env": "any", "agents": "any other"}]


def _teams() -> Rows:
    rows = []
    for name in pretrained_names():
        about = read_json(find_run(PREFIX + name) / ABOUT_FILE)
        best = max(about["win_rates"].items(), key=lambda each: each[0] == "eval, greedy")
        rows.append({"id": PREFIX + name, "learnt by": about["learnt_by"], "won": f"{best[1]:.1%} ({best[0]})"})
    return rows


def _extras() -> Rows:
    return [{"id": name, "for": extras.FEATURES.get(name, ""), "state": extras.state(name)} for name in extras.extras()]


KINDS: Mapping[str, Callable[[], Rows]] = {
    "envs": _envs,
    "agents": _agents,
    "algorithms": _algorithms,
    "presets": _presets,
    "teams": _teams,
    "extras": _extras,
}
