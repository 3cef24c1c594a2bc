"""SaidMotion: motion of a statement's subject, by the spelling of the statement's words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.relread.motion import FRAMES, MOTION_CLASSES

LENGTHS = range(3, 7)
"""Lengths of n-grams."""


class SaidMotion(nn.Module):
    """Likelihood of motion classes by statement.

    A word is the sum of the embeddings of its character n-grams (fastText, Bojanowski et al. 2017): an unseen one
    ("flees")
    is similar to seen ones ("fleeing"), and one that shares no n-gram says nothing.

    Args:
        width: of the embeddings.
        words: spelling of each id; ids without one are names that are like no other.

    Attributes:
        ngrams: those of all words, in the order of the rows of `embedding`.
    """

    def __init__(self, width: int, words: Sequence[str]) -> None:
        super().__init__()
        spelt = [ngrams(word) for word in words]
        self.ngrams = tuple(sorted({ngram for word in spelt for ngram in word}))
        number = {ngram: k for k, ngram in enumerate(self.ngrams)}
        self.embedding = nn.EmbeddingBag(len(number), width, mode="sum")
        nn.init.zeros_(self.embedding.weight)
        self.gaits = nn.Linear(width, MOTION_CLASSES)
        ids = torch.tensor([number[ngram] for word in spelt for ngram in word])
        ends = torch.tensor([len(word) for word in spelt]).cumsum(0)
        self.ids: Tensor
        self.begins: Tensor
        self.register_buffer("ids", ids, persistent=False)
        self.register_buffer("begins", torch.cat((ends.new_zeros(1), ends[:-1])), persistent=False)

    def forward(self, statements: Tensor) -> Tensor:
        """Return log likelihood ratios [U, S, MOTION_CLASSES] to `usual`, of the word sets [U, S, V] of statements."""
        return _among_as_old(self.gaits(statements @ self.embedding(self.ids, self.begins))) - self.usual()

    def usual(self) -> Tensor:
        """Return the log probabilities [MOTION_CLASSES] without a statement."""
        return _among_as_old(self.gaits.bias)


def _among_as_old(logits: Tensor) -> Tensor:
    """Log probabilities [..., MOTION_CLASSES] among things of the same age; 0 for those just come in sight."""
    return F.pad(logits.unflatten(-1, (-1, FRAMES)).log_softmax(-2)[..., 1:], (1, 0)).flatten(-2)


def ngrams(word: str) -> list[str]:
    """Return the distinct n-grams of a word, with marks where it begins and ends."""
    marked = f"<{word}>"
    return list(dict.fromkeys(marked[k : k + n] for n in LENGTHS for k in range(len(marked) - n + 1)))
