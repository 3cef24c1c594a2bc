"""The graph of a city: neighbours with their headings, and how many links a place is from a goal."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.single.touchdown.files import Link, Node
from magrounding.single.touchdown.layout import MAX_DIRECTIONS, column_of

FAR = 2**30
"""Links to a goal that cannot be reached."""


class Graph:
    """Places and the ways between them.

    Args:
        nodes, links: of the files.

    Attributes:
        ids: of the places, by number.
        numbers: number of each id.
        yaw: [N] degrees.
        places: [N, 2], latitude and longitude.
        ways: of each place (column, heading, number of the next place), by column.

    Raises:
        ConfigurationError: no place, one named twice, a link to one that there is not, or too many from one place.
    """

    def __init__(self, nodes: Sequence[Node], links: Iterable[Link]) -> None:
        if not nodes:
            raise ConfigurationError("nodes.txt names no place")
        self.ids = [node.id for node in nodes]
        self.numbers = {id: number for number, id in enumerate(self.ids)}
        if len(self.numbers) < len(nodes):
            raise ConfigurationError("nodes.txt names a place twice")
        self.yaw = np.array([node.yaw for node in nodes])
        self.places = np.array([(node.latitude, node.longitude) for node in nodes]).reshape(-1, 2)
        ways: list[list[tuple[int, float, int]]] = [[] for _ in nodes]
        for link in links:
            start, end = self.number(link.start), self.number(link.end)
            ways[start].append((column_of(float(self.yaw[start]), link.heading), link.heading, end))
        self.ways = [tuple(sorted(each)) for each in ways]
        self._linked: list[list[int]] = [[] for _ in nodes]
        self._open: list[list[int]] = [[] for _ in nodes]
        for start, each in enumerate(self.ways):
            for (_, _, end), is_open in zip(each, self._are_open(start), strict=True):
                self._linked[end].append(start)
                if is_open:
                    self._open[end].append(start)
        most = max(map(len, self.ways))
        if most > MAX_DIRECTIONS:
            raise ConfigurationError(f"links.txt has {most} ways from one place, at most {MAX_DIRECTIONS} are expected")
        self.distances = lru_cache(maxsize=256)(self._search)

    def number(self, id: str) -> int:
        """Return the number of a place; ConfigurationError for an unknown one."""
        if id not in self.numbers:
            raise ConfigurationError(f"there is no place {id!r} in nodes.txt")
        return self.numbers[id]

    def open_ways(self, place: int, goal: int) -> list[bool]:
        """Return whether each way from a place is open: none into a dead end, unless it is the goal or the only way."""
        is_goal = [end == goal for _, _, end in self.ways[place]]
        return [a or b for a, b in zip(self._are_open(place), is_goal, strict=True)]

    def _are_open(self, place: int) -> list[bool]:
        found = [len(self.ways[end]) >= 2 for _, _, end in self.ways[place]]
        return found if any(found) else [True] * len(found)

    def _search(self, goal: int) -> np.ndarray:
        """Return [N] int32, links to a goal from each place by open ways, FAR for none."""
        far = np.full(len(self.ids), FAR, np.int32)
        far[goal] = 0
        queue = deque([goal])
        while queue:
            place = queue.popleft()
            step = far[place] + 1
            for before in self._linked[place] if place == goal else self._open[place]:
                if far[before] > step:
                    far[before] = step
                    queue.append(before)
        return far
