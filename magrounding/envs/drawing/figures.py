"""Creatures, entities of MESSENGER and weapons: lists of shapes on a canvas of 100 × 100, read from a file.

`data/figures.json` has a palette and, by group and name, the shapes of a figure: a method of `Pen`, its numbers and
points, and a colour. A colour is "#rrggbb", a name of the palette, "tint" (the figure's own), or one of its `mixes`:
the tint with a share of a palette's colour in it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from magrounding.envs.drawing.pen import Colour, Pen, hashed, mix

Group = Literal["creatures", "entities", "weapons"]


@cache
def figures() -> dict[str, dict[str, Any]]:
    """Return the palette, and name → figure of each group."""
    return json.loads(files("magrounding.envs.drawing").joinpath("data/figures.json").read_text(encoding="utf-8"))


def draw_figure(pen: Pen, group: Group, name: str, tint: str = "") -> None:
    """Draw a figure of a group in a tint; an unlisted name always gets the same one of those with shapes."""
    data = figures()
    listed = data[group]
    name = listed.get(name, {}).get("like", name)
    if name not in listed:
        name = hashed(name, [each for each, figure in listed.items() if "shapes" in figure])
    colours: dict[str, Colour] = {**data["palette"], "tint": tint}
    for mixed, (other, share) in listed[name].get("mixes", {}).items():
        colours[mixed] = mix(tint, data["palette"][other], share)
    for shape, *numbers, colour in listed[name]["shapes"]:
        getattr(pen, shape)(*numbers, colours.get(colour, colour))
