"""A city as it is played: its graph, the routes of a split, and its panoramas, coarser ones too."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.single.touchdown import files
from magrounding.single.touchdown.graph import Graph
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, ROWS, SPLITS

_REMEMBERED = 1024


class City:
    """The files of a folder.

    Args:
        folder: that has them.

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
