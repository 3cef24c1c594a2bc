"""Pools of a replay's texts, and of its lists of texts to choose from. Each distinct one is stored once."""

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
        """All rows [N, …], as a view that later rows do not enter."""
        return self._space[: self._size]

    def append(self, rows: np.ndarray) -> None:
        """Append rows [R, …]."""
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
    """Distinct texts that a policy encodes together, found by content; the index of a text is its place.

    Args:
        fields: empty array [0, …] of each field of a text.
    """

    def __init__(self, fields: Mapping[str, np.ndarray]) -> None:
        self._rows = {name: Rows(empty) for name, empty in fields.items()}
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Add the new ones of U texts [U, …], and return the place [U] int64 of each of them all."""
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
        """Return the texts [U, …] at places [U]."""
        return {name: rows.all[places] for name, rows in self._rows.items()}

    def keep(self, used: np.ndarray) -> np.ndarray:
        """Drop all texts but those used [N] bool, and return the new place [N] int64 of each, −1 if dropped."""
        for rows in self._rows.values():
            rows.replace(rows.all[used])
        kept = [key for key, use in zip(self._places, used.tolist(), strict=True) if use]
        self._places = {key: place for place, key in enumerate(kept)}
        return np.where(used, np.cumsum(used) - 1, -1)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return all texts in their order."""
        return {name: rows.all.copy() for name, rows in self._rows.items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""
        for name, rows in self._rows.items():
            rows.replace(arrays[name].copy())
        keys = content_keys({name: rows.all for name, rows in self._rows.items()})
        self._places = {key: place for place, key in enumerate(keys.tolist())}


class ListPool:
    """Distinct lists of places in a TextPool, as many steps have the same list of texts to choose from."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}  # a list's int32 numbers, and its place
        self._lists: list[bytes] = []

    def __len__(self) -> int:
        return len(self._lists)

    def add(self, items: np.ndarray) -> int:
        """Add a list if it is new, and return its place."""
        key = items.astype(np.int32).tobytes()
        place = self._places.setdefault(key, len(self._lists))
        if place == len(self._lists):
            self._lists.append(key)
        return place

    def take(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the items [P] of K lists, concatenated, and the index [P] of the list of each item; both int64."""
        lists = [self._lists[place] for place in places.tolist()]
        lengths = np.array([len(each) // 4 for each in lists], np.int64)
        return _items(lists).astype(np.int64), np.repeat(np.arange(len(lists)), lengths)

    def items(self) -> np.ndarray:
        """Return the items of all lists, concatenated."""
        return _items(self._lists)

    def keep(self, used: np.ndarray) -> np.ndarray:
        """Drop all lists but those used [N] bool, and return the new place of each; see `TextPool.keep`."""
        self._hold([each for each, use in zip(self._lists, used.tolist(), strict=True) if use])
        return np.where(used, np.cumsum(used) - 1, -1)

    def renumber(self, places: np.ndarray) -> None:
        """Replace every item i by places[i], the new place of that text in the TextPool."""
        self._hold([places[_items([each])].astype(np.int32).tobytes() for each in self._lists])

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return all lists in their order."""
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
