"""Scene: one moment of a grid world, and `ansi`, its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from magrounding.brief import brief

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Figure:
    """Something that stands on the grid.

    Attributes:
        row, column: cell, from the top left.
        kind: "agent", "monster" or "item"; in MESSENGER "entity", as what each is for is to be read.
        name: what it is: "goblin", "sword"; an agent's index.
        quality: the word before the name: a monster's element ("fire"), an item's modifier ("blessed"); "" where there
            is none.
        claimed_by: indices of the agents that claim it for themselves.
    """

    row: int
    column: int
    kind: str
    name: str
    quality: str = ""
    claimed_by: tuple[int, ...] = ()


@dataclass(frozen=True)
class Scene:
    """One game at one moment.

    Attributes:
        walls: [H, W] bool.
        figures: who and what is on the grid; dead agents, slain monsters and taken items are not.
        alive: for each agent.
        inventories: for each agent, what it holds ("blessed sword"), or "".
        goal, manual: the texts; the goal is "" where there is none.
        step, max_cycles: how far the episode has come.
        outcome: "", "won" or "lost".
    """

    __repr__ = brief

    walls: np.ndarray
    figures: tuple[Figure, ...]
    alive: tuple[bool, ...]
    inventories: tuple[str, ...]
    goal: str
    manual: tuple[str, ...]
    step: int
    max_cycles: int
    outcome: str

    def marked(self, marks: np.ndarray) -> Scene:
        """Return this scene with claims: marks [n, H, W] is 1 where an agent claims what is there."""
        figures = (
            figure
            if figure.kind == "agent"
            else replace(figure, claimed_by=tuple(np.flatnonzero(marks[:, figure.row, figure.column] == 1).tolist()))
            for figure in self.figures
        )
        return replace(self, figures=tuple(figures))


def sorted_figures(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Agents as they come, then monsters and all else by name and place.

    The order in which a world keeps them is that of their roles, and legends have letters by the order.
    """
    agents, others = [], []
    for figure in figures:
        (agents if figure.kind == "agent" else others).append(figure)
    others.sort(key=lambda each: (each.kind != "monster", each.name, each.quality, each.row, each.column))
    return (*agents, *others)


def ansi(scene: Scene) -> str:
    """Return a scene as plain text: the step, the map, inventories, a legend, the goal and the manual."""
    codes = _codes(scene)
    cells = np.where(scene.walls, "#", ".").astype(object)
    for figure, code in zip(scene.figures, codes, strict=True):
        cell = cells[figure.row, figure.column]
        cells[figure.row, figure.column] = code if cell == "." else cell + code
    width = max(2, *(len(cell) for cell in cells.flat))
    lines = [f"step {scene.step} of {scene.max_cycles}" + (f" · {scene.outcome}" if scene.outcome else ""), ""]
    lines += [" ".join((cell * width if cell == "#" else cell).ljust(width) for cell in row).rstrip() for row in cells]
    lines.append("")
    for i, (alive, held) in enumerate(zip(scene.alive, scene.inventories, strict=True)):
        lines.append(f"{i:<3} agent {i} " + ((f"holds {held}" if held else "holds nothing") if alive else "is dead"))
    for figure, code in zip(scene.figures, codes, strict=True):
        if figure.kind != "agent":
            claimants = ", ".join(f"agent {i}" for i in figure.claimed_by)
            what = f"{figure.quality} {figure.name} ({figure.kind})".strip()
            lines.append(f"{code:<3} {what}" + (f", claimed by {claimants}" if claimants else ""))
    lines += ["", f"goal: {scene.goal}"] if scene.goal else [""]
    lines += ["manual:", *(f"  {statement}" for statement in scene.manual)]
    return "\n".join(lines)


def _codes(scene: Scene) -> list[str]:
    """A short sign for each figure: agents by number, monsters A B …, other things a b …."""
    letters = {"monster": iter(_LETTERS.upper()), "item": iter(_LETTERS)}
    return [
        figure.name if figure.kind == "agent" else next(letters.get(figure.kind, letters["item"]), "?")
        for figure in scene.figures
    ]
