"""ChoiceReplay: transitions between states that are texts, from one choice among texts to what is offered next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from magrounding.spec import CHOICES
from magrounding.training.text_pool import ListPool, TextPool
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
        arrays |= {f"lists.{name}": array for name, array in self._lists.snapshot().items()}
        for reader, pool in self._pools.items():
            arrays |= {f"texts.{reader}.{name}": array for name, array in pool.snapshot().items()}
        return {**arrays, "written": self._written.copy(), "stale": np.array([self._stale])}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put back what `snapshot` took, into a replay of the same options that is still empty."""

        def under(prefix: str) -> dict[str, np.ndarray]:
            return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

        self._written, self._stale = arrays["written"].copy(), int(arrays["stale"][0])
        for name, array in under("kept.").items():
            self._kept[name][self._used()] = array
        self._lists.restore(under("lists."))
        for reader, pool in self._pools.items():
            pool.restore(under(f"texts.{reader}."))

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
