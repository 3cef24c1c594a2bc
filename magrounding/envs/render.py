"""Scene: one moment of a grid world, and `ansi`, its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import ascii_lowercase, ascii_uppercase

import numpy as np

from magrounding.brief import brief


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
        unseen: [H, W] bool, cells of which the agent sees nothing; None where it sees them all.
        readers: for each statement of a manual that is split, the agents that read it, whose own it is first.
        said: agent → the statement that it told in the step before.
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
    unseen: np.ndarray | None = None
    readers: tuple[tuple[int, ...], ...] = ()
    said: Mapping[int, str] = field(default_factory=dict)

    def marked(self, marks: np.ndarray) -> Scene:
        """Return this scene with claims: marks [n, H, W] is 1 where an agent claims what is there."""

        def claimed(figure: Figure) -> Figure:
            agents = np.flatnonzero(marks[:, figure.row, figure.column] == 1).tolist()
            return figure if figure.kind == "agent" else replace(figure, claimed_by=tuple(agents))

        return replace(self, figures=tuple(map(claimed, self.figures)))


def sorted_figures(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Agents as they come, then monsters and all else by name and place.

    The order in which a world keeps them is that of their roles, and legends have letters by the order.
    """

    def key(each: Figure) -> tuple[bool | str | int, ...]:
        return () if each.kind == "agent" else (each.kind != "monster", each.name, each.quality, each.row, each.column)

    return tuple(sorted(figures, key=key))


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
    for k, known in enumerate(scene.readers, len(lines) - len(scene.readers)):
        lines[k] += f" (read by {' and '.join(f'agent {i}' for i in known) or 'none'})"
    return "\n".join(lines)


def _codes(scene: Scene) -> list[str]:
    """A short sign for each figure: agents by number, monsters A B …, other things a b …."""
    capitals, letters = iter(ascii_uppercase), iter(ascii_lowercase)
    return [
        each.name if each.kind == "agent" else next(capitals if each.kind == "monster" else letters, "?")
        for each in scene.figures
    ]
