"""TouchdownEnv: Touchdown as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.seeding import TASK, stream_key
from magrounding.single.one_agent import OneAgentEnv
from magrounding.single.touchdown.city import FAR, Graph, load_city
from magrounding.single.touchdown.files import Route, folder_of
from magrounding.single.touchdown.layout import (
    CLASSES,
    COLUMNS,
    DEGREES,
    HORIZON,
    MAX_DIRECTIONS,
    ROWS,
    SPLITS,
    column_of,
    turn,
)
from magrounding.single.touchdown.options import Touchdown, tokenizer
from magrounding.single.touchdown.text_view import LETTERS
from magrounding.spec import COLUMNS as TOWARDS
from magrounding.vector import Observation

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

HOP = 0.1
"""Reward of coming a link nearer."""


class TouchdownEnv(OneAgentEnv):
    """One walk for agent_0; arguments and infos as of `OneAgentEnv`, with the instruction as the `goal` of `text`.

    Attributes:
        city: graph, routes and panoramas.
        route: the one of this episode.
        place, heading: where the agent is, by number, and where it looks, in degrees.

    Raises:
        DataNotFound, ConfigurationError: the city lacks a file, or has one that is not what it should be.
    """

    id = "touchdown"

    def __init__(self, config: Touchdown, render_mode: str | None = None) -> None:
        folder = folder_of(config.data)
        self._tokenizer = tokenizer(folder)
        super().__init__(config, render_mode)
        self.city = load_city(folder)
        self._graph = self.city.graph
        self._routes = self.city.routes(config.split)
        self._ids = np.array([self._tokenizer.vocabulary[name] for name in CLASSES], np.int16)
        self._stop = MAX_DIRECTIONS if config.manual_stop else None
        self.route: Route = self._routes[0]
        self.place, self.heading = 0, 0.0
        self.visited: list[int] = []

    @property
    def goal(self) -> int:
        """The place to reach."""
        return self._graph.number(self.route.nodes[-1])

    def best_actions(self) -> np.ndarray:
        """Labels [1, A] bool: along the route where the agent is on it, or else any of the shortest ways to the goal.

        Every action once the walk is over; a CallOrderError before `reset` and after `close`.
        """
        self._require_start("best_actions")
        labels = np.full((1, self._num_actions), not self.agents)
        if not self.agents:
            return labels
        if self._stop is not None and self.place == self.goal:
            labels[0, self._stop] = True
            return labels
        ends = [end for _, end, _ in self._ways]
        following = self._following()
        if following in ends and self._mask[ends.index(following)]:
            labels[0, ends.index(following)] = True
            return labels
        far = [int(self._far[end]) if self._mask[j] else FAR for j, end in enumerate(ends)]
        labels[0, : len(ends)] = np.equal(far, min(far, default=FAR)) & self._mask[: len(ends)].astype(bool)
        labels[0, 0] |= not ends  # where no way begins, action 0 stays
        return labels

    def _draw(self, mode: str) -> str | np.ndarray:
        view = View(
            instruction=self.route.instruction,
            panorama=np.roll(self.city.panorama(self.place), self._shift(1), axis=1),
            columns=[(column + self._shift(1)) % COLUMNS for column, _, _ in self._raw_ways()],
            looks_at=(self._looks_at() + self._shift(1)) % COLUMNS,
            step=len(self.played),
            max_cycles=self.config.max_cycles,
            left=int(self._far[self.place]),
            graph=self._graph,
            route=[self._graph.number(id) for id in self.route.nodes],
            visited=self.visited,
            place=self.place,
            heading=self.heading,
        )
        return ansi(view) if mode == "ansi_full" else rgb_array(view)

    def _begin(self, seed: int, episode: int) -> None:
        place = list(SPLITS).index(self.config.split)
        self.route = self._routes[int(stream_key(seed, episode, TASK + 8 * place)) % len(self._routes)]
        self.place, self.heading = self._graph.number(self.route.nodes[0]), self.route.heading
        self._far = self._graph.distances(self.goal)
        if self._far[self.place] >= FAR:
            raise ConfigurationError(
                f"no way leads from {self.route.nodes[0]} to {self.route.nodes[-1]}: mend the route"
            )
        self._goal_row = self._tokenizer.row(self.route.instruction, self.spec["goal"].shape[0])
        self._begin_text("goal", self._goal_row)
        self.visited = [self.place]
        self._look()

    def _play(self, action: int) -> tuple[float, bool, bool]:
        before = self._far[self.place]
        self._illegal = not self._mask[action]
        stops = action == self._stop and not self._illegal
        if not self._illegal and not stops and self._ways:  # where no way begins, action 0 stays
            _, self.place, self.heading = self._ways[action]
            self.visited.append(self.place)
            self._look()
        self._won = self.place == self.goal and (stops or self._stop is None)
        terminated = self._won or stops
        truncated = not terminated and len(self.played) >= self.config.max_cycles
        if terminated or truncated:
            return (1.0 if self._won else -1.0), terminated, truncated
        after = self._far[self.place]
        return (0.0 if FAR in (before, after) else HOP * float(before - after)), False, False

    def _look(self) -> None:
        """Compute ways, mask and panorama of the current place."""
        patch = self.config.patch
        # In patches throughout: panorama, ways and the agent's own column turn by the same whole number of them.
        shift, width = self._shift(patch), COLUMNS // patch
        raw = self._raw_ways()
        ways = [((column // patch + shift) % width, end, heading) for column, end, heading in raw]
        opened = self._graph.open_ways(self.place, self.goal)
        order = sorted(range(len(ways)), key=lambda k: ((raw[k][0] + shift * patch) % COLUMNS, ways[k][1]))
        self._ways = [ways[k] for k in order]
        self._mask = np.zeros(self._num_actions, np.int8)
        self._mask[: len(order)] = [opened[k] for k in order]
        self._columns = np.full(self._num_actions, -1, np.int16)
        self._columns[: len(order)] = [column for column, _, _ in self._ways]
        if not order:
            self._mask[0] = 1
            self._columns[0] = 0
        looks_at = (self._looks_at() // patch + shift) % width
        if self._stop is not None:
            self._mask[self._stop], self._columns[self._stop] = 1, looks_at
        self._position = np.array((HORIZON // patch, looks_at), np.int16)
        self._grid = self._ids[np.roll(self.city.panorama(self.place, patch), shift, axis=1)][..., None]

    def _raw_ways(self) -> list[tuple[int, int, float]]:
        """(column of the panorama as it was taken, place, heading) of each way."""
        return [(column, end, heading) for column, heading, end in self._graph.ways[self.place]]

    def _looks_at(self) -> int:
        """Return the column of the panorama, as it was taken, that the agent looks at."""
        return column_of(float(self._graph.yaw[self.place]), self.heading)

    def _shift(self, patch: int) -> int:
        """Return the number of patches by which the panorama is turned so that the agent looks at its middle."""
        return COLUMNS // patch // 2 - self._looks_at() // patch if self.config.turned else 0

    def _following(self) -> int | None:
        """Return the next place of the route, where the agent is on it."""
        nodes, here = self.route.nodes, self._graph.ids[self.place]
        if here not in nodes:
            return None
        last = len(nodes) - 1 - nodes[::-1].index(here)
        return self._graph.number(nodes[last + 1]) if last + 1 < len(nodes) else None

    def _observe(self) -> Observation:
        return {
            "action_mask": self._mask.copy(),
            TOWARDS: self._columns.copy(),
            "goal": self._goal_row.copy(),
            "grid": self._grid.copy(),
            "position": self._position.copy(),
        }

    def _info(self) -> dict[str, Any]:
        return {"text": {"goal": self.route.instruction}}


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
