"""A game of BabyAI as text, with the whole map, and what its agent sees as a scene."""

from __future__ import annotations

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

from magrounding.envs.render import Figure, Scene
from magrounding.single.babyai.words import VIEW, VOCABULARY

_AGENT = ">v<^"
_THINGS = {"key": "k", "ball": "o", "box": "b"}
_DOORS = {0: "/", 1: "+", 2: "*"}
"""Signs by a door's state: open, closed, locked."""
_SCENERY = [VOCABULARY[kind] for kind in ("unseen", "empty", "wall")]


def ansi(game: RoomGridLevel) -> str:
    """The mission, the whole map with two signs a cell (what, and the first letter of its colour), and what is held."""
    lines = [f"step {game.step_count} of {game.max_steps}", f"goal: {game.mission}", ""]
    at = tuple(map(int, game.agent_pos))
    for y in range(game.height):
        cells = (_AGENT[game.agent_dir] * 2 if (x, y) == at else _signs(game.grid.get(x, y)) for x in range(game.width))
        lines.append("".join(cells).rstrip())
    held = game.carrying
    lines += ["", "holds " + (f"{held.color} {held.type}" if held else "nothing")]
    lines.append("key k, ball o, box b; door: open /, closed +, locked *; the second sign is the colour")
    return "\n".join(lines)


def scene(game: RoomGridLevel, grid: np.ndarray, outcome: str = "") -> Scene:
    """Draw what the agent sees: it stands in the middle of the last row and looks at the first.

    Args:
        game: minigrid's game.
        grid: [7, 7, 3] int16, the observation.
        outcome: see `Scene`.
    """
    kinds = grid[..., 0]
    figures = [Figure(VIEW - 1, VIEW // 2, "agent", "0", "facing up")]
    for row, column in np.argwhere(~np.isin(kinds, _SCENERY)).tolist():
        if (row, column) != (VIEW - 1, VIEW // 2):  # the agent's own cell shows what it carries
            kind, colour, state = map(VOCABULARY.decode, grid[row, column, :, None])
            figures.append(Figure(row, column, "item", kind, f"{state} {colour}".strip()))
    held = game.carrying
    return Scene(
        walls=kinds == VOCABULARY["wall"],
        figures=tuple(figures),
        alive=(True,),
        inventories=(f"{held.color} {held.type}" if held else "",),
        goal=game.mission,
        manual=(),
        step=game.step_count,
        max_cycles=game.max_steps,
        outcome=outcome,
        unseen=kinds == VOCABULARY["unseen"],
    )


def _signs(thing) -> str:
    if thing is None:
        return " ."
    if thing.type == "wall":
        return "##"
    sign = _DOORS[thing.encode()[2]] if thing.type == "door" else _THINGS[thing.type]
    return sign + thing.color[0]
