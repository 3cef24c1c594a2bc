"""Text encoders of a Guide: a small one over hashed words, pairs and parts of words, or a pretrained language model."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.modules import mlp
from magrounding.agents.pretrained_language import inspect_model, load_model
from magrounding.single.tokenizer import split

PARTS = (3, 4, 5)
"""Letters of the parts of a word."""

REMEMBERED = 2**16
"""Texts, and words, whose features are kept."""


class HashedEncoder(nn.Module):
    """Mean of the embeddings of hashed features (`buckets` × `width`), and a residual perceptron.

    No word is unknown: unseen ones keep their initial embeddings, so the same word in a task and in an action matches,
    and so do words that share parts.
    """

    kind = "hashed"

    def __init__(self, buckets: int = 2**15, width: int = 128, hidden: int = 256) -> None:
        super().__init__()
        self.options: dict[str, Any] = {"buckets": buckets, "width": width, "hidden": hidden}
        self.embedding = nn.EmbeddingBag(buckets, width, mode="mean")
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.norm = nn.LayerNorm(width)
        self.more = mlp(width, hidden, width, nn.GELU)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, width] of U texts."""
        ids, offsets = bag([hashed_features(text, self.options["buckets"]) for text in texts])
        device = self.embedding.weight.device
        mean = self.norm(self.embedding(ids.to(device), offsets.to(device)))
        return mean + self.more(mean)

    def save_files(self, folder: Path) -> None:
        """Write nothing: no file is needed beside the weights."""


class LanguageModelEncoder(nn.Module):
    """The state of a pretrained model's first token, fine-tuned as in LGE (BERT-base there).

    In training there are a layer and a tanh above it (SimCSE).

    Args:
        folder: of the model, as `transformers` saves one: config.json, a tokenizer, weights as safetensors.
        tokens: of a text; longer ones are cut.

    Raises:
        ConfigurationError: a folder that holds no such model.
        MissingExtra: `transformers` is not installed.
    """

    kind = "language_model"

    def __init__(self, folder: Path, tokens: int = 32) -> None:
        super().__init__()
        width, _ = inspect_model(folder)
        self.options: dict[str, Any] = {"tokens": tokens}
        self._folder = folder
        self._tokenizer, self.network = load_model(folder)
        self.head = nn.Linear(width, width)

    def forward(self, texts: Sequence[str]) -> Tensor:
        """Return vectors [U, D] of U texts."""
        tokens = self._tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.options["tokens"], return_tensors="pt"
        )
        device = self.head.weight.device
        inputs = {name: tokens[name].to(device) for name in ("input_ids", "attention_mask")}
        first = self.network(**inputs).last_hidden_state[:, 0]
        return self.head(first).tanh() if self.training else first

    def save_files(self, folder: Path) -> None:
        """Copy the model's configuration, tokenizer and original weights."""
        target = folder / "model"
        if target.resolve() == self._folder.resolve():
            return
        target.mkdir(parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if path.suffix in (".json", ".txt", ".safetensors"):
                shutil.copyfile(path, target / path.name)


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
