"""A game of BabyAI as text and as a scene."""

from __future__ import annotations

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

from magrounding.envs.render import Figure, Scene

_AGENT = ">v<^"
_FACES = ("right", "down", "left", "up")
_THINGS = {"key": "k", "ball": "o", "box": "b"}
_DOORS = {0: "/", 1: "+", 2: "*"}
"""Signs by a door's state: open, closed, locked."""


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


def scene(game: RoomGridLevel, outcome: str = "") -> Scene:
    """The whole map as a Scene: doors and things are items, a door's quality being its colour and state."""
    walls = np.zeros((game.height, game.width), np.bool_)
    x, y = map(int, game.agent_pos)
    figures = [Figure(y, x, "agent", "0", f"facing {_FACES[game.agent_dir]}")]
    for place, thing in enumerate(game.grid.grid):
        row, column = divmod(place, game.width)
        if thing is None:
            continue
        if thing.type == "wall":
            walls[row, column] = True
        else:
            figures.append(Figure(row, column, "item", thing.type, _quality(thing)))
    held = game.carrying
    return Scene(
        walls=walls,
        figures=tuple(figures),
        alive=(True,),
        inventories=(f"{held.color} {held.type}" if held else "",),
        goal=game.mission,
        manual=(),
        step=game.step_count,
        max_cycles=game.max_steps,
        outcome=outcome,
    )


def _signs(thing) -> str:
    if thing is None:
        return " ."
    if thing.type == "wall":
        return "##"
    sign = _DOORS[thing.encode()[2]] if thing.type == "door" else _THINGS[thing.type]
    return sign + thing.color[0]


def _quality(thing) -> str:
    if thing.type != "door":
        return thing.color
    return ("open ", "closed ", "locked ")[thing.encode()[2]] + thing.color
