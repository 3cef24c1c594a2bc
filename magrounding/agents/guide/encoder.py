"""HashedEncoder: a small text encoder over hashed words, pairs and parts of words, so that no word is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.single.tokenizer import split

PARTS = (3, 4, 5)
"""Letters of the parts of a word."""

REMEMBERED = 2**16
"""Texts, and words, whose features are kept."""


class HashedEncoder(nn.Module):
    """Mean of the embeddings of hashed features (`buckets` × `width`), and a residual perceptron.

    Unseen words keep their initial embeddings: the same word in a task and in an action matches, and so do words that
    share parts.
    """

    kind = "hashed"

    def __init__(self, buckets: int = 2**15, width: int = 128, hidden: int = 256) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"buckets": buckets, "width": width, "hidden": hidden}
        self.embedding = nn.EmbeddingBag(buckets, width, mode="mean")
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.norm = nn.LayerNorm(width)
        self.more = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, width] of U texts."""
        ids, offsets = bag([hashed_features(text, self.options["buckets"]) for text in texts])
        device = self.embedding.weight.device
        mean = self.norm(self.embedding(ids.to(device), offsets.to(device)))
        return mean + self.more(mean)

    def save_files(self, folder: Path) -> None:
        """Write nothing: no file is needed beside the weights."""


@lru_cache(maxsize=REMEMBERED)
def hashed_features(text: str, buckets: int) -> np.ndarray:
    """Return the features [F] int64, below `buckets`, of a text: of each word, its letters, and it with the next."""
    words = split(text)
    found = [feature for word in words for feature in _of_word(word, buckets)]
    found += (_hash(f"2 {first} {second}", buckets) for first, second in zip(["", *words], [*words, ""], strict=True))
    return np.array(found, np.int64)


def bag(texts: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Return features of U texts one after another, int64, and [U] where each begins: the input of an EmbeddingBag."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return torch.from_numpy(np.concatenate(texts)), torch.from_numpy(offsets)


@lru_cache(maxsize=REMEMBERED)
def _of_word(word: str, buckets: int) -> tuple[int, ...]:
    bounded = f"<{word}>"
    parts = {bounded[i : i + n] for n in PARTS for i in range(len(bounded) - n + 1)} - {bounded}
    return (_hash(f"1 {word}", buckets), *sorted(_hash(f"0 {part}", buckets) for part in parts))


def _hash(text: str, buckets: int) -> int:
    return crc32(text.encode()) % buckets
