"""What statements say of motion: how the thing that a statement is about moves, read by the spelling of its words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magrounding.agents.relread.motion import FRAMES, GAITS

LENGTHS = range(3, 7)
"""Of the n-grams of a word."""


class SaidMotion(nn.Module):
    """How likely things move in some way, as a statement has it.

    A word is the sum of the embeddings of its character n-grams (fastText, Bojanowski et al. 2017): one never met
    ("flees") is then not unlike those that were ("fleeing"), and what shares nothing with any of them says nothing.

    Args:
        width: of the embeddings.
        words: how each id is spelt; ids without a spelling are names that are like no other.

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
        self.gaits = nn.Linear(width, GAITS)
        ids = torch.tensor([number[ngram] for word in spelt for ngram in word])
        ends = torch.tensor([len(word) for word in spelt]).cumsum(0)
        self.ids: Tensor
        self.begins: Tensor
        self.register_buffer("ids", ids, persistent=False)
        self.register_buffer("begins", torch.cat((ends.new_zeros(1), ends[:-1])), persistent=False)

    def forward(self, statements: Tensor) -> Tensor:
        """[U, S, GAITS]: how much more likely each gait is than usual, as a logarithm; 0 where there are no words.

        Args:
            statements: [U, S, V], 1 for each word that a statement has.
        """
        return _among_as_old(self.gaits(statements @ self.embedding(self.ids, self.begins))) - self.usual()

    def usual(self) -> Tensor:
        """[GAITS]: log probabilities where nothing is said."""
        return _among_as_old(self.gaits.bias)


def _among_as_old(logits: Tensor) -> Tensor:
    """Log probabilities [..., GAITS] among things that were followed for as long; 0 for those just come in sight."""
    return F.pad(logits.unflatten(-1, (-1, FRAMES)).log_softmax(-2)[..., 1:], (1, 0)).flatten(-2)


def ngrams(word: str) -> list[str]:
    """The distinct n-grams of a word, with marks where it begins and ends."""
    marked = f"<{word}>"
    return list(dict.fromkeys(marked[k : k + n] for n in LENGTHS for k in range(len(marked) - n + 1)))
