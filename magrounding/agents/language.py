"""Word ids to states: embeddings and recurrent text encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RECURRENT = ("lstm", "gru")
_MARKS = 1 << 18
"""Bound of ids that are found in a table, which takes a third to two thirds of the time of `torch.unique`."""


class Words(NamedTuple):
    """U texts: ids [U, L], words first, and length [U] int64, the terminator included."""

    ids: Tensor
    length: Tensor


def join_statements(text: Tensor, longest: int | None = None) -> Words:
    """Join the words of texts [U, S, L] or [U, L]: padding (0) dropped, nothing cut, one terminator.

    `longest` is a bound on words and terminator that is known, so that nothing waits for a GPU.

    The terminator is a position with the padding word (a zero vector) that counts as a word, so no text is empty.
    """
    ids = text.flatten(1)
    padding = ids == 0
    order = padding.to(torch.uint8).argsort(dim=1, stable=True)
    words = torch.cat((ids.gather(1, order), ids.new_zeros(len(ids), 1)), 1)
    length = 1 + (~padding).sum(1)
    return Words(words[:, : int(length.max()) if longest is None else longest], length)


def statements_of(text: Tensor, longest: int | None = None) -> Tensor:
    """Return [U, L', S] bool, the statement of each word of `join_statements(text)`; its terminator has none."""
    count = text.shape[1]
    numbers = torch.arange(1, count + 1, device=text.device).unsqueeze(1) * (text != 0)
    return F.one_hot(join_statements(numbers, longest).ids, count + 1)[..., 1:].bool()


class TextEncoder(nn.Module):
    """A bidirectional LSTM or GRU ("lstm", "gru") over words, with `hidden` units in each direction (RTFM eq. 9, 13).

    States equal those of packed sequences: one network reads from the first word, another from the terminator, each
    with the padding last. On a CPU this takes a third to a tenth of the time of packing.

    Computes in float32 also under autocast: texts are few and short, and a state sums up rounding errors.
    """

    def __init__(self, width: int, hidden: int, kind: str = "lstm") -> None:
        super().__init__()
        self.width = 2 * hidden
        network = nn.LSTM if kind == "lstm" else nn.GRU
        self.ahead = network(width, hidden, batch_first=True)
        self.back = network(width, hidden, batch_first=True)

    def forward(self, table: Callable[[Tensor], Tensor], words: Words) -> tuple[Tensor, Tensor]:
        """Return states [U, L, 2 · hidden], undefined behind the terminator, and mask [U, L], true up to it.

        `table` gives the embeddings [U, L, width] of ids [U, L].
        """
        ids, length = words
        place = torch.arange(ids.shape[1], device=ids.device)
        mask = place < length[:, None]
        mirror = torch.where(
            mask, length[:, None] - 1 - place, place
        )  # [U, L], reverses each text and is its own inverse
        with torch.autocast(ids.device.type, enabled=False):
            ahead, _ = self.ahead(table(ids.int()))
            back, _ = self.back(table(ids.gather(1, mirror).int()))
            rows = (mirror + ids.shape[1] * torch.arange(len(ids), device=ids.device)[:, None]).flatten()
            back = back.flatten(0, 1).index_select(0, rows).view_as(ahead)
            return torch.cat((ahead, back), 2), mask


class WordStates(nn.Module):
    """Word embeddings as states: learned from scratch, in place of a pretrained model.

    Statements are padded to `tokens` words; longer ones stay as they are.
    """

    def __init__(self, vocabulary_size: int, width: int, tokens: int) -> None:
        super().__init__()
        self.width, self.tokens = width, tokens
        self.words = nn.Embedding(vocabulary_size, width, padding_idx=0)
        with torch.no_grad():
            # Large enough for keys to differ from the start, so small that a word training never shows says little.
            self.words.weight.mul_(0.2)

    def forward(self, manual: Tensor) -> tuple[Tensor, Tensor]:
        """Return states [U, S, T, width] of manual [U, S, L], and mask [U, S, T], true for words."""
        ids = F.pad(manual, (0, max(0, self.tokens - manual.shape[2])))
        return self.words(ids.int()), ids != 0


def distinct_ids(ids: Tensor, bound: int) -> tuple[Tensor, Tensor]:
    """Return the distinct values [D] of ids [...] in [0, bound), int64, in order, and the index of each [...]."""
    if bound > _MARKS:
        return torch.unique(ids, return_inverse=True)
    marks = torch.zeros(bound, dtype=torch.bool, device=ids.device)
    marks[ids.flatten()] = True
    values = marks.nonzero().squeeze(1)
    rank = torch.empty(bound, dtype=torch.int64, device=ids.device)
    rank[values] = torch.arange(len(values), device=ids.device)
    return values, rank[ids]


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct rows of an integer tensor [N, L], and [N] the index of each row among them."""
    return torch.unique(rows, dim=0, return_inverse=True)
