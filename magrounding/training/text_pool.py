"""Pools: texts, and lists of texts to choose from, that a replay refers to. Each distinct one is kept once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np

from magrounding.texts import content_keys


class Rows:
    """An array [N, …] that grows at its end.

    Args:
        empty: [0, …], of the shape and type of the rows.
    """

    def __init__(self, empty: np.ndarray) -> None:
        self._space, self._size = empty, 0

    @property
    def all(self) -> np.ndarray:
        """[N, …]; what is appended later is not in it."""
        return self._space[: self._size]

    @property
    def nbytes(self) -> int:
        return self._space.nbytes

    def append(self, rows: np.ndarray) -> None:
        """Put rows [R, …] behind the others."""
        size = self._size + len(rows)
        if size > len(self._space):
            space = np.empty((size + size // 4, *self._space.shape[1:]), self._space.dtype)
            space[: self._size] = self.all
            self._space = space
        self._space[self._size : size] = rows
        self._size = size

    def replace(self, rows: np.ndarray) -> None:
        """Hold these rows and no others."""
        self._space, self._size = rows, len(rows)


class TextPool:
    """Distinct texts of one reader, by content.

    Args:
        fields: [0, …] for each field that is read together.
    """

    def __init__(self, fields: Mapping[str, np.ndarray]) -> None:
        self._rows = {name: Rows(empty) for name, empty in fields.items()}
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """Of the texts, without what finds them."""
        return sum(rows.nbytes for rows in self._rows.values())

    def add(self, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Place [U] int64 of each of U texts [U, …], those that are new being copied in."""
        places, found, new = self._places, [], []
        for row, key in enumerate(content_keys(texts).tolist()):
            place = places.get(key)
            if place is None:
                place = places[key] = len(places)
                new.append(row)
            found.append(place)
        if new:
            for name, rows in self._rows.items():
                rows.append(texts[name][new])
        return np.array(found, np.int64)

    def take(self, places: np.ndarray) -> dict[str, np.ndarray]:
        """The texts [U, …] at some places."""
        return {name: rows.all[places] for name, rows in self._rows.items()}

    def keep(self, used: np.ndarray) -> np.ndarray:
        """Drop all texts but those used [N] bool, and say where each is now, [N] int64; −1 for one that is gone."""
        for rows in self._rows.values():
            rows.replace(rows.all[used])
        kept = [key for key, use in zip(self._places, used.tolist(), strict=True) if use]
        self._places = {key: place for place, key in enumerate(kept)}
        return np.where(used, np.cumsum(used) - 1, -1)

    def snapshot(self) -> dict[str, np.ndarray]:
        """All texts in their order."""
        return {name: rows.all.copy() for name, rows in self._rows.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""
        for name, rows in self._rows.items():
            rows.replace(arrays[name].copy())
        keys = content_keys({name: rows.all for name, rows in self._rows.items()})
        self._places = {key: place for place, key in enumerate(keys.tolist())}


class ListPool:
    """Distinct lists of places in a TextPool: as most steps change little, the same list is offered again and again."""

    def __init__(self) -> None:
        self._items, self._ends = Rows(np.zeros(0, np.int32)), Rows(np.zeros(0, np.int64))
        self._places: dict[bytes, int] | None = {}  # None: to be found anew, when a list is added

    def __len__(self) -> int:
        return len(self._ends.all)

    @property
    def nbytes(self) -> int:
        """Of the lists, without what finds them."""
        return self._items.nbytes + self._ends.nbytes

    def add(self, items: np.ndarray) -> int:
        """The place of a list, which is copied in if it is new."""
        items = items.astype(np.int32)
        if self._places is None:
            self._places = self._find()
        key = _digest(items)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self._places)
            self._items.append(items)
            self._ends.append(np.array([len(self._items.all)]))
        return place

    def take(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The items [P] of lists [K] behind one another, and [P] which of the K lists each is of; both int64."""
        begins, ends = self._bounds()
        lengths = ends[places] - begins[places]
        owner = np.repeat(np.arange(len(places)), lengths)
        first = np.cumsum(lengths) - lengths
        at = np.arange(len(owner)) + (begins[places] - first)[owner]
        return self._items.all[at].astype(np.int64), owner

    def items(self) -> np.ndarray:
        """Of all lists."""
        return self._items.all

    def keep(self, used: np.ndarray) -> np.ndarray:
        """Drop all lists but those used [N] bool, and say where each is now; see `TextPool.keep`."""
        begins, ends = self._bounds()
        self._items.replace(self._items.all[np.repeat(used, ends - begins)])
        self._ends.replace(np.cumsum((ends - begins)[used]))
        self._places = None
        return np.where(used, np.cumsum(used) - 1, -1)

    def renumber(self, places: np.ndarray) -> None:
        """Items are other places from now on: that of item i is places[i]."""
        self._items.replace(places[self._items.all].astype(np.int32))
        self._places = None

    def snapshot(self) -> dict[str, np.ndarray]:
        """All lists in their order."""
        return {"items": self._items.all.copy(), "ends": self._ends.all.copy()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""
        self._items.replace(arrays["items"].copy())
        self._ends.replace(arrays["ends"].copy())
        self._places = None

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        ends = self._ends.all
        return np.concatenate((np.zeros(1, np.int64), ends[:-1]))[: len(ends)], ends

    def _find(self) -> dict[bytes, int]:
        begins, ends = (each.tolist() for each in self._bounds())
        items = self._items.all
        return {_digest(items[a:b]): i for i, (a, b) in enumerate(zip(begins, ends, strict=True))}


def _digest(items: np.ndarray) -> bytes:
    return hashlib.blake2b(items.tobytes(), digest_size=16).digest()
