"""TextTrack: which texts the games of a rollout showed, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from magrounding.brief import brief
from magrounding.spec import CHOICES, EnvSpec
from magrounding.texts import TextTable, flat_choices, gather_texts, text_keys


@dataclass
class TextColumn:
    """What an agent was shown of one kind of text.

    Attributes:
        ids: [U, …] of each field that is read together, every distinct text once.
        index: [T+1, B] int64, which text each observation shows; [T+1, B, C] for texts to choose from.
        final: [F] (or [F, C]) int64, the texts of the true last observations of `Column.cut`.
    """

    __repr__ = brief

    ids: dict[str, np.ndarray]
    index: np.ndarray
    final: np.ndarray

    def used(self, games: np.ndarray, final: np.ndarray) -> TextColumn:
        """The same of some games [b] and final observations, with no other texts than theirs, in the same order."""
        index, last = self.index[:, games], self.final[final]
        used, local = np.unique(np.concatenate([index.ravel(), last.ravel()]), return_inverse=True)
        ids = {name: array[used] for name, array in self.ids.items()}
        return TextColumn(ids, local[: index.size].reshape(index.shape), local[index.size :].reshape(last.shape))


class TextTrack:
    """Notes, step by step, which texts B games show; the same text is kept once.

    Args:
        names: fields that are read together.
        spec: of the games.
        steps: T + 1.
        num_envs: B.
    """

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
        self._final: list[np.ndarray] = []

    def note(self, t: int, texts: Mapping[str, np.ndarray], document: np.ndarray | None) -> None:
        """What is on show in step t: text fields [B, …] and the key [B] of the episodes' shared texts."""
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

    def note_final(self, t: int, rows: np.ndarray, texts: Mapping[str, np.ndarray]) -> None:
        """The texts [F, …] of the true last observations of the games `rows` [F], which end in step t."""
        ids = gather_texts(texts, self.names, len(rows))
        lasting = self.spec.unshared_texts.isdisjoint(self.names)
        last = self._index[t][rows] if lasting else self._add(text_keys(ids, self.names, self.spec, None), ids)
        self._final.append(last)

    def forget_final(self) -> None:
        """Let the texts of last observations be noted anew, for another agent."""
        self._final.clear()

    def column(self) -> TextColumn:
        """Everything noted so far."""
        ids, rank = self._table.arrays()
        nothing = self._index[:0, 0]
        return TextColumn(ids, rank[self._index], rank[np.concatenate([nothing, *self._final])])

    def _add(self, keys: np.ndarray, ids: Mapping[str, np.ndarray]) -> np.ndarray:
        return self._table.add(keys.ravel(), flat_choices(ids)).reshape(keys.shape)
