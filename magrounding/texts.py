"""TextTable: every distinct text once, by content; an observation holds the indices of its texts.

A manual, a goal, a message and a list of choices are the same thing here: an array of word ids. Texts that are read
together (a manual and the goal of the same game) are one entry of several arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from magrounding.jit import cached_njit
from magrounding.seeding import hash64
from magrounding.spec import CHOICES, EnvSpec


class TextTable:
    """Distinct texts in the order in which they were first shown; `names` are of the arrays that are read together."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._place: dict[int, int] = {}
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in names}

    def __len__(self) -> int:
        return len(self._place)

    def add(self, keys: np.ndarray, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Index [R] int64 of each of R texts, those that are new being copied in.

        Args:
            keys: [R] int64, equal for equal texts only (see `content_keys`).
            texts: [R, …] for each of `names`.
        """
        begin, length = runs(keys)
        place, index = self._place, np.empty(len(begin), np.int64)
        new = []
        for run, (row, key) in enumerate(zip(begin.tolist(), keys[begin].tolist(), strict=True)):
            at = place.get(key)
            if at is None:
                at = place[key] = len(place)
                new.append(row)
            index[run] = at
        if new:
            for name, parts in self._parts.items():
                parts.append(texts[name][new])
        return np.repeat(index, length)

    def arrays(self) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """All texts [U, …] for each of `names`, in the order of their keys, and the rank [U] int64 of each index.

        That order does not depend on when a text was first shown, so the same texts are always read alike.
        """
        order = np.argsort(np.fromiter(self._place, np.int64, len(self._place)))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return {name: np.concatenate(parts)[order] for name, parts in self._parts.items()}, rank


class TextRecorder:
    """Recorder of the texts that B games show in each of T + 1 `steps`, in fields read together; each text once."""

    def __init__(self, names: tuple[str, ...], spec: EnvSpec, steps: int, num_envs: int) -> None:
        self.names, self.spec = names, spec
        self._num_envs = num_envs
        offered = (spec[CHOICES].shape[0],) if names == (CHOICES,) else ()
        self._index = np.zeros((steps, num_envs, *offered), np.int64)
        self.begin()

    def begin(self) -> None:
        """Forget everything: another rollout begins."""
        self._table = TextTable(self.names)
        self._keys: np.ndarray | None = None

    def add(self, t: int, texts: Mapping[str, np.ndarray], document: np.ndarray | None) -> None:
        """Record step t: text fields [B, …] and the key [B] of the episodes' shared texts."""
        ids = gather_texts(texts, self.names, self._num_envs)
        keys = text_keys(ids, self.names, self.spec, document)
        if self._keys is None:
            self._index[t] = self._add(keys, ids)
        else:
            self._index[t] = self._index[t - 1]
            changed = keys != self._keys
            rows = np.flatnonzero(changed if changed.ndim == 1 else changed.any(1))
            if len(rows):
                self._index[t][rows] = self._add(keys[rows], {name: array[rows] for name, array in ids.items()})
        self._keys = keys.copy()

    def last(self, t: int, rows: np.ndarray, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Record texts [F, …], the true last observations of the games `rows` [F], which end in step t; for `texts`."""
        ids = gather_texts(texts, self.names, len(rows))
        lasting = self.spec.unshared_texts.isdisjoint(self.names)
        return self._index[t][rows] if lasting else self._add(text_keys(ids, self.names, self.spec, None), ids)

    def texts(self, last: Sequence[np.ndarray] = ()) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Return all texts [U, …] by field, which of them each observation shows, and some last observations."""
        ids, rank = self._table.arrays()
        nothing = self._index[:0, 0]
        return ids, rank[self._index], rank[np.concatenate([nothing, *last])]

    def _add(self, keys: np.ndarray, ids: Mapping[str, np.ndarray]) -> np.ndarray:
        return self._table.add(keys.ravel(), flat_choices(ids)).reshape(keys.shape)


def runs(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and lengths of stretches of equal keys [R]: rows of padding are most of a list of choices."""
    bounds = np.ones(len(keys) + 1, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=bounds[1:-1])
    at = bounds.nonzero()[0]
    return at[:-1], at[1:] - at[:-1]


def content_keys(texts: Mapping[str, np.ndarray]) -> np.ndarray:
    """Keys [R] int64 of R texts by what they say: a 63-bit hash of all their ids, [R, …] for each name."""
    keys = np.zeros(len(next(iter(texts.values()))), np.uint64)
    for array in texts.values():
        _hash_rows(np.ascontiguousarray(array.reshape(len(array), -1), np.int64), keys)
    return (keys >> np.uint64(1)).astype(np.int64)


def gather_texts(
    texts: Mapping[str, np.ndarray], names: tuple[str, ...], num_envs: int, rows: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """[R, …] of some text fields, [R, 0] of those that the world lacks."""
    nothing = np.zeros((num_envs, 0), np.int16)
    found = {name: texts.get(name, nothing) for name in names}
    return found if rows is None else {name: array[rows] for name, array in found.items()}


def text_keys(
    texts: Mapping[str, np.ndarray], names: tuple[str, ...], spec: EnvSpec, document: np.ndarray | None
) -> np.ndarray:
    """Keys [R] of texts [R, …] that are read together, or [R, C] of those to choose from.

    The key that a world gives its episode's shared texts serves where all of them are read, or else their content does.
    """
    if document is not None and spec.unshared_texts.isdisjoint(names):
        return document
    if names == (CHOICES,):
        offered = texts[CHOICES]
        return content_keys(flat_choices(texts)).reshape(offered.shape[:2])
    return content_keys(texts)


def flat_choices(texts: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Texts as they are; of choices [R, C, L] each as a text of its own, [R · C, L]."""
    return {name: array.reshape(-1, array.shape[-1]) if name == CHOICES else array for name, array in texts.items()}


@cached_njit()
def _hash_rows(rows, keys):
    """Mix each row's ids into its key."""
    for r in range(rows.shape[0]):
        key = keys[r] ^ np.uint64(rows.shape[1])
        for i in range(rows.shape[1]):
            key = hash64(key, rows[r, i])
        keys[r] = key
