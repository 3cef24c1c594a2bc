"""ChoiceReplay: transitions between states that are texts, from one choice among texts to what is offered next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from magrounding.spec import CHOICES
from magrounding.texts import content_keys
from magrounding.training.prefixes import prefixed, under
from magrounding.training.trajectory import Trajectory

_NONE = -1
"""Value in place of a next state where the game was over."""


class Transitions(NamedTuple):
    """b transitions; K of them lead to a state whose value counts.

    Attributes:
        texts: reader → [U, …] ids of each of its fields, every distinct text of the batch once.
        places: reader → [U] where these texts are in the replay, until its next sweep.
        state: reader → [b] which of them the state showed.
        action: [b] which choice was made.
        reward: [b] float32.
        follows: [K] which of the transitions go on.
        following: reader → [K] which texts the state after them showed.
        offered: [P] the choices in all those states, one state after the other.
        owner: [P] which of the K states each is of.
    """

    texts: dict[str, dict[str, np.ndarray]]
    places: dict[str, np.ndarray]
    state: dict[str, np.ndarray]
    action: np.ndarray
    reward: np.ndarray
    follows: np.ndarray
    following: dict[str, np.ndarray]
    offered: np.ndarray
    owner: np.ndarray

    @property
    def shown(self) -> int:
        """Texts that all states and choices refer to."""
        states = len(self.state) * (len(self.action) + len(self.follows))
        return states + len(self.action) + len(self.offered)


class ChoiceReplay:
    """The latest transitions, in two rings: those with a positive reward, and the others.

    Texts and lists of choices are kept once. Each time that a quarter of the transitions has been written over, those
    that nothing refers to any more are dropped.

    Args:
        capacity: transitions to keep.
        fraction: part of them, and of what is drawn, that is for positive rewards.
        as_code: nothing ever counts as positive, and its part of a batch is not drawn: what the published program does.
        texts: reader → [0, …] of each of its fields.

    Attributes:
        sweeps: how often what nothing refers to was dropped, so that texts have other places since.
    """

    def __init__(
        self, capacity: int, fraction: float, as_code: bool, texts: Mapping[str, Mapping[str, np.ndarray]]
    ) -> None:
        first = round(fraction * capacity)
        self.fraction, self.as_code = fraction, as_code
        self._begin, self._capacity = np.array([0, first]), np.array([first, capacity - first])
        self._written = np.zeros(2, np.int64)
        self._stale = self.sweeps = 0
        self._pools = {name: TextPool(fields) for name, fields in texts.items()}
        self._lists = ListPool()
        self._readers = tuple(name for name in texts if name != CHOICES)
        places = ("action", "offered", *(f"{when}.{name}" for name in self._readers for when in ("state", "next")))
        self._kept: dict[str, np.ndarray] = {name: np.full(capacity, _NONE, np.int32) for name in places}
        self._kept["reward"] = np.zeros(capacity, np.float32)

    def __len__(self) -> int:
        return int(self._filled.sum())

    @property
    def positive(self) -> int:
        """Transitions in the half for positive rewards."""
        return int(self._filled[0])

    @property
    def _filled(self) -> np.ndarray:
        return np.minimum(self._written, self._capacity)

    def add(self, trajectory: Trajectory) -> None:
        """Add all steps of a trajectory in which the agent acted.

        A game that ended begins anew within its step, which is no step of its own and leaves no transition.
        """
        places = {name: pool.add(trajectory.texts[name].ids) for name, pool in self._pools.items()}
        shown = {name: places[name][texts.index] for name, texts in trajectory.texts.items()}
        truncations = trajectory.truncations
        last = {name: places[name][index] for name, index in truncations.texts.items()}
        truncated = {(int(t), int(b)): f for f, (t, b) in enumerate(zip(*truncations.where, strict=True))}
        mask, final_mask = trajectory.observation["action_mask"] > 0, truncations.observation["action_mask"] > 0
        for t, b in np.argwhere(trajectory.alive).tolist():
            row = {"action": shown[CHOICES][t, b, trajectory.action[t, b]], "reward": trajectory.reward[t, b]}
            row |= {f"state.{name}": shown[name][t, b] for name in self._readers}
            if trajectory.discount[t, b]:
                f = truncated.get((t, b))
                after = {name: shown[name][t + 1, b] if f is None else last[name][f] for name in self._pools}
                there = mask[t + 1, b] if f is None else final_mask[f]
                row |= {f"next.{name}": after[name] for name in self._readers}
                row["offered"] = self._lists.add(after[CHOICES][there])
            self._write(row)
        if self._stale >= max(1, int(self._capacity.sum()) // 4):
            self._sweep()

    def sample(self, batch: int, rng: np.random.Generator) -> Transitions | None:
        """Different transitions, all of a ring equally likely; None as long as there are too few.

        A ring that has too few for its part leaves the rest of it to the other.
        """
        positive = round(batch * self.fraction)
        if self.as_code:
            batch, positive = batch - positive, 0
        filled = self._filled
        if filled.sum() < batch:
            return None
        others = min(batch - min(positive, int(filled[0])), int(filled[1]))
        drawn = [self._begin[half] + rng.choice(filled[half], count, replace=False)
                 for half, count in enumerate((batch - others, others)) if count]  # fmt: skip
        return self._transitions(np.concatenate(drawn))

    def snapshot(self) -> dict[str, np.ndarray]:
        """Everything that decides what is drawn from now on, as arrays for `restore`."""
        used = self._used()
        arrays = {f"kept.{name}": array[used] for name, array in self._kept.items()}
        arrays |= prefixed("lists.", self._lists.snapshot())
        for reader, pool in self._pools.items():
            arrays |= prefixed(f"texts.{reader}.", pool.snapshot())
        return {**arrays, "written": self._written.copy(), "stale": np.array([self._stale])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took, into a replay of the same options that is still empty."""
        self._written, self._stale = arrays["written"].copy(), int(arrays["stale"][0])
        for name, array in under("kept.", arrays).items():
            self._kept[name][self._used()] = array
        self._lists.restore(under("lists.", arrays))
        for reader, pool in self._pools.items():
            pool.restore(under(f"texts.{reader}.", arrays))

    def _used(self) -> np.ndarray:
        """The rows that hold something."""
        return np.concatenate([self._begin[half] + np.arange(self._filled[half]) for half in range(2)])

    def _write(self, row: Mapping[str, int | float]) -> None:
        half = int(self.as_code or row["reward"] <= 0)
        half = half if self._capacity[half] else 1 - half
        at = self._begin[half] + self._written[half] % self._capacity[half]
        self._stale += int(self._written[half] >= self._capacity[half])
        self._written[half] += 1
        for name, array in self._kept.items():
            array[at] = row.get(name, _NONE)

    def _sweep(self) -> None:
        """Drop the texts and lists that no transition refers to."""
        rows, kept, self._stale = self._used(), self._kept, 0
        self.sweeps += 1

        def mark(size: int, *places: np.ndarray) -> np.ndarray:
            used = np.zeros(size + 1, np.bool_)
            for each in places:
                used[each] = True  # the last one stands for _NONE
            return used[:-1]

        def move(name: str, places: np.ndarray) -> None:
            old = kept[name][rows]
            kept[name][rows] = np.where(old == _NONE, _NONE, np.append(places, _NONE)[old])

        move("offered", self._lists.keep(mark(len(self._lists), kept["offered"][rows])))
        for name, pool in self._pools.items():
            refers = ["action"] if name == CHOICES else [f"state.{name}", f"next.{name}"]
            more = [self._lists.items()] if name == CHOICES else []
            places = pool.keep(mark(len(pool), *(kept[each][rows] for each in refers), *more))
            for each in refers:
                move(each, places)
            if name == CHOICES:
                self._lists.renumber(places)

    def _transitions(self, rows: np.ndarray) -> Transitions:
        kept = {name: array[rows] for name, array in self._kept.items()}
        follows = np.flatnonzero(kept["offered"] != _NONE)
        items, owner = self._lists.take(kept["offered"][follows])
        texts, places, state, following = {}, {}, {}, {}
        for name in self._readers:
            both = np.concatenate((kept[f"state.{name}"], kept[f"next.{name}"][follows]))
            texts[name], places[name], local = self._distinct(name, both)
            state[name], following[name] = local[: len(rows)], local[len(rows) :]
        texts[CHOICES], places[CHOICES], local = self._distinct(CHOICES, np.concatenate((kept["action"], items)))
        action, offered = local[: len(rows)], local[len(rows) :]
        return Transitions(texts, places, state, action, kept["reward"], follows, following, offered, owner)

    def _distinct(self, name: str, places: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """The distinct texts [U, …] at some places, their places [U] in order, and which of them each is."""
        pool = self._pools[name]
        used, local = np.zeros(len(pool), np.bool_), np.zeros(len(pool), np.int64)
        used[places] = True
        distinct = np.flatnonzero(used)
        local[distinct] = np.arange(len(distinct))
        return pool.take(distinct), distinct, local[places]


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
