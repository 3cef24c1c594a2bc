"""Pools: texts, and lists of texts to choose from, that a replay refers to. Each distinct one is kept once."""

from __future__ import annotations

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
        """Bytes of the texts, without what finds them."""
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
        self._places: dict[bytes, int] = {}  # a list's int32 numbers, and its place
        self._lists: list[bytes] = []

    def __len__(self) -> int:
        return len(self._lists)

    @property
    def nbytes(self) -> int:
        """Bytes of the lists, without what finds them."""
        return sum(map(len, self._lists))

    def add(self, items: np.ndarray) -> int:
        """The place of a list, which is copied in if it is new."""
        key = items.astype(np.int32).tobytes()
        place = self._places.setdefault(key, len(self._lists))
        if place == len(self._lists):
            self._lists.append(key)
        return place

    def take(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The items [P] of lists [K] behind one another, and [P] which of the K lists each is of; both int64."""
        lists = [self._lists[place] for place in places.tolist()]
        lengths = np.array([len(each) // 4 for each in lists], np.int64)
        return _items(lists).astype(np.int64), np.repeat(np.arange(len(lists)), lengths)

    def items(self) -> np.ndarray:
        """The items of all lists."""
        return _items(self._lists)

    def keep(self, used: np.ndarray) -> np.ndarray:
        """Drop all lists but those used [N] bool, and say where each is now; see `TextPool.keep`."""
        self._hold([each for each, use in zip(self._lists, used.tolist(), strict=True) if use])
        return np.where(used, np.cumsum(used) - 1, -1)

    def renumber(self, places: np.ndarray) -> None:
        """Items are other places from now on: that of item i is places[i]."""
        self._hold([places[_items([each])].astype(np.int32).tobytes() for each in self._lists])

    def snapshot(self) -> dict[str, np.ndarray]:
        """All lists in their order."""
        ends = np.cumsum([len(each) // 4 for each in self._lists], dtype=np.int64)
        return {"items": self.items().copy(), "ends": ends}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""
        lists = np.split(arrays["items"].astype(np.int32), arrays["ends"][:-1]) if len(arrays["ends"]) else []
        self._hold([each.tobytes() for each in lists])

    def _hold(self, lists: list[bytes]) -> None:
        self._lists, self._places = lists, {each: place for place, each in enumerate(lists)}


def _items(lists: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(lists), np.int32)
