"""HashedEncoder: texts to vectors with a small network of our own, learnt from scratch in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from magrounding.agents.guide.features import bag, hashed_features

REMEMBERED = 2**16
"""Texts whose features are kept; past them it begins anew."""


class HashedEncoder(nn.Module):
    """Mean of the embeddings of hashed features, and a perceptron beside it.

    A word that training never shows has embeddings all the same, as they were drawn at the start: the same word in a
    task and in an action finds itself, and so do words that share parts.

    Args:
        buckets: of features.
        width: of the embeddings, and of a text's vector.
        hidden: of the perceptron.
    """

    kind = "hashed"

    def __init__(self, buckets: int = 2**15, width: int = 128, hidden: int = 256) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"buckets": buckets, "width": width, "hidden": hidden}
        self.embedding = nn.EmbeddingBag(buckets, width, mode="mean")
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.norm = nn.LayerNorm(width)
        self.more = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
        self._known: dict[str, np.ndarray] = {}

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Vectors [U, width] of U texts."""
        ids, offsets = bag([self._features(text) for text in texts])
        device = self.embedding.weight.device
        mean = self.norm(self.embedding(ids.to(device), offsets.to(device)))
        return mean + self.more(mean)

    def save_files(self, folder: Path) -> None:
        """Nothing is needed beside the weights."""

    def _features(self, text: str) -> np.ndarray:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[text] = hashed_features(text, self.options["buckets"])
        return found
