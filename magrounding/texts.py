"""Texts: told apart by content, and kept once each; an observation holds the indices of its texts.

A manual, a goal, a message and a list of choices are the same thing here: an array of word ids. Texts that are read
together (a manual and the goal of the same game) are one entry of several arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from magrounding.jit import cached_njit
from magrounding.seeding import hash64
from magrounding.spec import CHOICES, EnvSpec


class TextRecorder:
    """Recorder of the texts that B games show in each of T + 1 `steps`, in fields read together; each text once."""

    def __init__(self, names: tuple[str, ...], spec: EnvSpec, steps: int, num_envs: int) -> None:
        self.names, self.spec = names, spec
        offered = (spec[CHOICES].shape[0],) if names == (CHOICES,) else ()
        self._keys = np.zeros((steps, num_envs, *offered), np.int64)
        self.begin()

    def begin(self) -> None:
        """Forget everything: another rollout begins."""
        self._known: dict[int, int] = {}
        self._parts: dict[str, list[np.ndarray]] = {name: [] for name in self.names}

    def add(self, t: int, texts: Mapping[str, np.ndarray], document: np.ndarray | None) -> None:
        """Record step t: text fields [B, …] and the key [B] of the episodes' shared texts."""
        self._keys[t] = self._keep(gather_texts(texts, self.names, self._keys.shape[1]), document)

    def last(self, t: int, rows: np.ndarray, texts: Mapping[str, np.ndarray]) -> np.ndarray:
        """Record texts [F, …], the true last observations of the games `rows` [F], which end in step t; for `texts`."""
        lasting = self.spec.unshared_texts.isdisjoint(self.names)
        return self._keys[t][rows] if lasting else self._keep(gather_texts(texts, self.names, len(rows)), None)

    def texts(self, last: Sequence[np.ndarray] = ()) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
        """Return all texts [U, …] by field, which of them each observation shows, and some last observations.

        They are in the order of their keys, not in which they were shown, so the same texts are always read alike.
        """
        known = np.fromiter(self._known, np.int64)
        order = known.argsort()
        ids = {name: np.concatenate(parts)[order] for name, parts in self._parts.items()}
        shown, final = (
            np.searchsorted(known[order], keys) for keys in (self._keys, np.concatenate([self._keys[:0, 0], *last]))
        )
        return ids, shown, final

    def _keep(self, ids: Mapping[str, np.ndarray], document: np.ndarray | None) -> np.ndarray:
        """Copy in the texts that are new; return the keys of all."""
        keys = text_keys(ids, self.names, self.spec, document)
        places = zip(*(each.tolist() for each in np.unique(keys, return_index=True)), strict=True)
        new = {key: row for key, row in places if key not in self._known}
        if new:
            self._known |= new
            for name, array in flat_choices(ids).items():
                self._parts[name].append(array[list(new.values())])
        return keys


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
