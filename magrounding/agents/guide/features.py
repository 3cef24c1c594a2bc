"""Features: a text as numbers of hashed words, pairs of words and parts of words, so that no word is unknown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from magrounding.single.tokenizer import split

PARTS = (3, 4, 5)
"""Letters of the parts of a word."""


def hashed_features(text: str, buckets: int) -> np.ndarray:
    """The features [F] int64 of a text: of each word, of what its letters are, and of each word with the next.

    Args:
        text: any.
        buckets: features are numbers below it.
    """
    words = split(text)
    found = [feature for word in words for feature in _of_word(word, buckets)]
    found += (_hash(f"2 {first} {second}", buckets) for first, second in zip(["", *words], [*words, ""], strict=True))
    return np.array(found, np.int64)


def bag(texts: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Features of U texts one after another, int64, and [U] where each text begins: what an EmbeddingBag takes."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return torch.from_numpy(np.concatenate(texts)), torch.from_numpy(offsets)


@lru_cache(maxsize=2**16)
def _of_word(word: str, buckets: int) -> tuple[int, ...]:
    bounded = f"<{word}>"
    parts = {bounded[i : i + n] for n in PARTS for i in range(len(bounded) - n + 1)} - {bounded}
    return (_hash(f"1 {word}", buckets), *sorted(_hash(f"0 {part}", buckets) for part in parts))


def _hash(text: str, buckets: int) -> int:
    return crc32(text.encode()) % buckets
