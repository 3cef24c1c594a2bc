"""EncodedTexts: a cache of encodings, so that a policy encodes each distinct observed text once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.policy import Policy, TextEncoding
from magrounding.agents.transfer import upload
from magrounding.texts import runs

KEPT = 20_000
"""Number of kept texts beyond which all are dropped, so that the cache does not fill the memory."""
_UNREAD = -1
"""Index of a text that is not encoded yet."""


class EncodedTexts:
    """The encodings of one kind of text in a batch of episodes.

    Args:
        policy: the network that reads. Call `forget` when its weights change.
        name: key of `policy.reads`, which names the fields.
        keep: keep texts that no game shows any longer, as they may come back before the weights change. Without it
            their slots are used again, so there are never more encodings than texts shown in all games.

    Attributes:
        encoding: of all texts that are kept, all as long as the longest, padded with zeros (False in a mask).
        encoded: number of texts encoded so far.
    """

    def __init__(self, policy: Policy, name: str, *, keep: bool) -> None:
        self.policy, self.name, self.keep = policy, name, keep
        self.fields = policy.reads[name]
        self.encoding: TextEncoding = {}
        self.encoded = 0
        self._device = next(policy.parameters()).device
        self._slots: dict[int, int] = {}
        self._keys = self._index = np.zeros(0, np.int64)  # key and slot of the text that each game shows, [B, …]

    def forget(self) -> None:
        self._slots.clear()
        self.encoding = {}
        self._keys = self._index = np.zeros(0, np.int64)

    def read(self, keys: np.ndarray, texts: Mapping[str, np.ndarray], rows: np.ndarray | None = None) -> np.ndarray:
        """Encode new texts and return the index [R, …] int64 of each text in `encoding`; call it without gradients.

        Args:
            keys: [R, …] int64, equal keys mean equal texts.
            texts: [R · …, …] ids of each of `fields`.
            rows: [R] games that show them, ascending; the texts of other games have not changed. None: all games.
        """
        some = slice(None) if rows is None else rows
        self._make_room(keys, rows)
        index = self._index[some].copy()
        changed = ((self._keys[some] != keys) | (index == _UNREAD)).ravel().nonzero()[0]
        if not len(changed):
            return index
        if self.keep and len(self._slots) > KEPT:
            self.forget()
            return self.read(keys, texts, rows)
        self._keys[some] = keys
        different = keys.ravel()[changed]
        begin, length = runs(different)
        shown, new = different[begin].tolist(), dict[int, int]()
        for row, key in zip(changed[begin].tolist(), shown, strict=True):
            if key not in self._slots:
                new.setdefault(key, row)
        if new:
            self._place(new, texts)
        index.ravel()[changed] = np.repeat(np.array([self._slots[key] for key in shown], np.int64), length)
        self._index[some] = index
        return index

    def _make_room(self, keys: np.ndarray, rows: np.ndarray | None) -> None:
        """Resize for the keys of some games; games that were not read yet get the keys of the first of these."""
        before, index = self._keys, self._index
        games = len(keys) if rows is None else max(len(before), int(rows.max(initial=-1)) + 1)
        if before.shape == (games, *keys.shape[1:]):
            return
        self._keys = np.broadcast_to(keys[:1], (games, *keys.shape[1:])).copy()
        self._index = np.full(self._keys.shape, _UNREAD)
        if rows is not None and before.shape[1:] == keys.shape[1:]:
            self._keys[: len(before)], self._index[: len(before)] = before, index

    def _place(self, new: dict[int, int], texts: Mapping[str, np.ndarray]) -> None:
        """Encode new texts, given the row of each key in `texts`, and give each a slot."""
        if not self.keep:
            for key in self._slots.keys() - set(self._keys.ravel().tolist()):
                del self._slots[key]
        rows, used = list(new.values()), set(self._slots.values())
        capacity = len(next(iter(self.encoding.values()), ())) if used else 0
        free = [slot for slot in range(capacity) if slot not in used]
        places = [*free[: len(rows)], *range(capacity, capacity + len(rows) - len(free))]
        ids = {("ids", name): texts[name][rows] for name in self.fields}
        sent: dict[Any, Tensor] = upload({**ids, "places": np.array(places)}, self._device)
        encoded = self.policy.encode(self.name, {name: sent["ids", name] for name in self.fields})
        self.encoded += len(rows)
        size = max(capacity, places[-1] + 1)
        self.encoding = overwrite(self.encoding, sent["places"], encoded, size) if used else dict(encoded)
        self._slots.update(zip(new, places, strict=True))


def overwrite(kept: TextEncoding, rows: Tensor, new: TextEncoding, size: int) -> TextEncoding:
    """Write the texts of `new` [R, …] to `rows` [R] int64 of `kept`, in place where they fit.

    Where a new text is longer than all that were kept, or `size` texts do not fit, the kept ones are padded with zeros
    first: use the returned encoding. For encodings without gradients.
    """
    if all(len(tensor) == size and tensor.shape[1:] == new[name].shape[1:] for name, tensor in kept.items()):
        return {name: tensor.index_copy_(0, rows, new[name]) for name, tensor in kept.items()}
    larger = {name: _pad_to(tensor, (size, *new[name].shape[1:])) for name, tensor in kept.items()}
    return {
        name: tensor.index_copy_(0, rows, _pad_to(new[name], (0, *tensor.shape[1:]))) for name, tensor in larger.items()
    }


def _pad_to(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The tensor with zeros behind each axis that is shorter than in `shape`."""
    missing = [max(target - size, 0) for target, size in zip(shape, tensor.shape, strict=True)]
    return F.pad(tensor, [side for size in reversed(missing) for side in (0, size)]) if any(missing) else tensor
