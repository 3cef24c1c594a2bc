"""A city as it is played: its graph, the routes of a split, and its panoramas, coarser ones too."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.single.touchdown import files
from magrounding.single.touchdown.files import Link, Node
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, MAX_DIRECTIONS, ROWS, SPLITS, column_of

_REMEMBERED = 1024

FAR = 2**30
"""Links to a goal that cannot be reached."""


class Graph:
    """Places and the ways between them.

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


class City:
    """The files of a folder.

    Attributes:
        graph: places and ways.

    Raises:
        DataNotFound: a file is not there.
        ConfigurationError: a file that is not what it should be, or a place without a panorama.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.graph = Graph(files.read_nodes(folder / files.NODES), files.read_links(folder / files.LINKS))
        names, self._panoramas = files.read_panoramas(folder)
        rows = {name: row for row, name in enumerate(names)}
        lacking = [id for id in self.graph.ids if id not in rows]
        if lacking:
            raise ConfigurationError(f"{len(lacking)} places have no panorama, {lacking[0]!r} among them")
        self._rows = [rows[id] for id in self.graph.ids]
        self.routes = lru_cache(maxsize=len(SPLITS))(self._read_routes)
        self.panorama = lru_cache(maxsize=_REMEMBERED)(self._panorama)
        self._weights = lru_cache(maxsize=1)(self._weigh)

    def _read_routes(self, split: str) -> list[files.Route]:
        """Return the routes of a split; ConfigurationError for one with an unknown place."""
        routes = files.read_routes(self._folder / SPLITS[split])
        for route in routes:
            for id in route.nodes:
                self.graph.number(id)
        return routes

    def _panorama(self, place: int, patch: int = 1) -> np.ndarray:
        """Return the classes [⌈47 / patch⌉, 128 / patch] uint8 seen from a place; do not change them."""
        classes = np.asarray(self._panoramas[self._rows[place]])
        files.check_classes(classes)
        if patch == 1:
            return classes
        votes = np.zeros((-(-ROWS // patch) * patch, COLUMNS, len(CLASSES)))
        votes[:ROWS] = np.eye(len(CLASSES))[classes] * self._weights()
        blocks = votes.reshape(-1, patch, COLUMNS // patch, patch, len(CLASSES))
        return blocks.sum((1, 3)).argmax(-1).astype(np.uint8)

    def _weigh(self) -> np.ndarray:
        """Return [19], the inverse frequency of each class in the city (SILG, app. E, α = 1)."""
        counts = np.zeros(len(CLASSES), np.int64)
        for block in np.array_split(self._panoramas, -(-len(self._panoramas) // _REMEMBERED)):
            files.check_classes(block)
            counts += np.bincount(block.ravel(), minlength=len(CLASSES))
        return 1 / np.maximum(counts, 1)


@lru_cache(maxsize=4)
def load_city(folder: Path) -> City:
    """Return the city of a folder, which all games of a process share."""
    return City(folder)
