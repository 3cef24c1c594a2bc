"""A walk of Touchdown as text, and as a picture: the panorama strip with its directions, the instruction and a map."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from magrounding.single.touchdown.city import Graph
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, DEGREES, ROWS, turn
from magrounding.single.touchdown.text_view import LETTERS

SCALE, MAP, MARGIN, LINE = 7, 420, 12, 18
WIDTH = COLUMNS * SCALE + 2 * MARGIN
HEIGHT = ROWS * SCALE + 3 * MARGIN + 34 + MAP

_HEX = (
    "804080 d782cd 707074 966e50 be9978 282828 fac81e eb5a14 3c8c32 98dc98 96c3eb dc143c ff788c 1428aa 0078a0 00aa78 "
    "005a6e 7828e6 f0f03c"
)
_COLOURS = np.array([tuple(bytes.fromhex(colour)) for colour in _HEX.split()], np.uint8)
"""RGB of the classes: Cityscapes' where they can be distinguished."""

_ROUTE, _WALK, _START, _GOAL, _AGENT = "#7aa7e0", "#d01030", "#3c78c8", "#1a9a50", "#d01030"
_KEY = (("start", _START, 7), ("goal", _GOAL, 7), ("agent", _AGENT, 5), ("route", _ROUTE, 0), ("walk", _WALK, 0))
"""Key of the map: name, colour, and a dot's radius, 0 being a line."""


class View(NamedTuple):
    """Everything that a picture of a step shows.

    Attributes:
        panorama: [47, 128] classes.
        columns: of the directions, as they can be chosen.
        looks_at: column that the agent looks at.
        left: links to the goal.
        graph, route, visited, place, heading: the walk on the map, by numbers of places.
    """

    instruction: str
    panorama: np.ndarray
    columns: list[int]
    looks_at: int
    step: int
    max_cycles: int
    left: int
    graph: Graph
    route: Sequence[int]
    visited: Sequence[int]
    place: int
    heading: float

    @property
    def directions(self) -> list[tuple[int, int]]:
        """(column, degrees to the right of where the agent looks) of each direction, in the order of the actions."""
        return [(x, round(turn(0.0, (x - self.looks_at) * DEGREES))) for x in sorted(self.columns)]

    @property
    def caption(self) -> str:
        """Steps so far, and links to the goal."""
        return f"step {self.step} of {self.max_cycles} · {self.left} links from the goal"


def ansi(view: View) -> str:
    """Return the panorama in letters, every second row, with its directions, and the instruction."""
    marks = [" "] * COLUMNS
    marks[view.looks_at] = "v"
    for number, (column, _) in enumerate(view.directions):
        marks[column] = str(number)
    letters = np.array(list(LETTERS))
    rows = ["".join(letters[row]).rstrip() for row in view.panorama[::2]]
    ways = [f"{number}: column {column}, {angle:+d}°" for number, (column, angle) in enumerate(view.directions)]
    key = "  ".join(f"{letter} {name}" for letter, name in zip(LETTERS, CLASSES, strict=True) if letter != " ")
    lines = [view.caption, *textwrap.wrap(view.instruction, COLUMNS), "", *rows, "".join(marks).rstrip(), *ways, key]
    return "\n".join(lines)


def rgb_array(view: View) -> np.ndarray:
    """Return a picture [HEIGHT, WIDTH, 3] uint8."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH, HEIGHT), "#ffffff")
    draw = ImageDraw.Draw(image)
    font, small = ImageFont.load_default(size=15), ImageFont.load_default(size=12)
    strip = Image.fromarray(_COLOURS[view.panorama]).resize((COLUMNS * SCALE, ROWS * SCALE), Image.Resampling.NEAREST)
    image.paste(strip, (MARGIN, MARGIN))
    base = MARGIN + ROWS * SCALE
    x = MARGIN + (view.looks_at + 0.5) * SCALE
    draw.polygon([(x - 6, MARGIN), (x + 6, MARGIN), (x, MARGIN + 10)], fill="#d01030")
    for number, (column, _) in enumerate(view.directions):
        x = MARGIN + (column + 0.5) * SCALE
        draw.polygon([(x - 8, base + 15), (x + 8, base + 15), (x, base + 1)], fill="#23252e")
        draw.text((x, base + 24), str(number), "#23252e", font, anchor="mm")
    top = base + 34 + MARGIN
    _draw_map(draw, view, (MARGIN, top, MARGIN + MAP, top + MAP))
    left, width = MARGIN * 3 + MAP, WIDTH - MAP - MARGIN * 4
    instruction = re.sub(r" ([,.;:!?])", r"\1", view.instruction)
    lines = textwrap.wrap(instruction, max(20, int(width / 7.6)))
    most = (MAP - 116) // LINE - 2
    if len(lines) > most:
        lines = [*lines[: most - 1], lines[most - 1] + " …"]
    for k, line in enumerate([view.caption, "", *lines]):
        draw.text((left, top + k * LINE), line, "#23252e", font)
    for k, (name, colour, radius) in enumerate(_KEY):
        x, y = left + k * 84, top + MAP - 104
        if radius:
            draw.ellipse((x + 6 - radius, y - radius, x + 6 + radius, y + radius), fill=colour)
        else:
            draw.line((x - 2, y, x + 14, y), fill=colour, width=7 if colour == _ROUTE else 3)
        draw.text((x + 18, y), name, "#23252e", small, anchor="lm")
    shown = np.unique(view.panorama)
    for k, number in enumerate(shown.tolist()):
        x, y = left + k % 4 * 105, top + MAP - 80 + k // 4 * 20
        draw.rectangle((x, y, x + 12, y + 12), fill=tuple(_COLOURS[number].tolist()))
        draw.text((x + 18, y - 1), CLASSES[number], "#23252e", small)
    return np.array(image)


def _draw_map(draw, view: View, box: tuple[int, int, int, int]) -> None:
    """Streets near the route, the route, the walk so far, start, goal and the agent; north is up."""
    graph, route = view.graph, view.route
    metres = graph.places * 111_320.0
    metres[:, 1] *= math.cos(math.radians(float(graph.places[:, 0].mean())))
    near = np.array([*route, *view.visited])
    low, high = metres[near].min(0), metres[near].max(0)
    middle, reach = (low + high) / 2, max(80.0, float((high - low).max()) / 2 + 40)
    size = box[2] - box[0]

    def point(place: int) -> tuple[float, float]:
        north, east = (metres[place] - middle) / reach * size / 2
        return box[0] + size / 2 + east, box[1] + size / 2 - north

    draw.rectangle(box, fill="#f4f4f1", outline="#c8c8c4")
    inside = np.flatnonzero((np.abs(metres - middle) <= reach).all(1)).tolist()
    for place in inside:
        for _, _, end in graph.ways[place]:
            if (np.abs(metres[end] - middle) <= reach).all():
                draw.line((*point(place), *point(end)), fill="#b9bbc2", width=4)
    for walk, colour, width in ((route, _ROUTE, 7), (view.visited, _WALK, 3)):
        if len(walk) > 1:
            draw.line([point(place) for place in walk], fill=colour, width=width)
    for place, colour in ((route[0], _START), (route[-1], _GOAL)):
        x, y = point(place)
        draw.ellipse((x - 7, y - 7, x + 7, y + 7), fill=colour)
    x, y = point(view.place)
    angle = math.radians(view.heading)
    draw.line((x, y, x + 18 * math.sin(angle), y - 18 * math.cos(angle)), fill=_AGENT, width=3)
    draw.ellipse((x - 5, y - 5, x + 5, y + 5), fill=_AGENT)
