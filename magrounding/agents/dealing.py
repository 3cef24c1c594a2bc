"""Names that are dealt anew to each manual in training."""

from __future__ import annotations

import torch
from torch import Tensor, nn

POOL = 499
"""Names that manuals are dealt from: a prime, so that each stride goes through all."""


class Dealer(nn.Module):
    """Deals names anew: in training, each document's come from a pool, by a hash of its words.

    It is the parametrization of a word table in which names and the pool, its last rows, stay as they are.

    Args:
        ranks: [V] int64, 1 … M for names and the pool, 0 for all other words.
    """

    def __init__(self, ranks: Tensor) -> None:
        super().__init__()
        self.ranks = nn.Buffer(ranks, persistent=False)

    def forward(self, table: Tensor) -> Tensor:
        return torch.where((self.ranks > 0).unsqueeze(1), table.detach(), table)

    def draw(self, manual: Tensor) -> Tensor:
        """Return [U, 2], a shift and a stride over the pool for each of manuals [U, S, L]."""
        words = manual.flatten(1).long()
        mixed = words * (torch.arange(1, words.shape[1] + 1, device=words.device) * 0x9E3779B1 % 0x7FFFFFFF)
        mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D % 0xFFFFFFFB).sum(1)
        return torch.stack((mixed % POOL, 1 + mixed // POOL % (POOL - 1)), 1)

    def deal(self, ids: Tensor, drawn: Tensor) -> Tensor:
        """Return ids [N, …] with the names that were drawn [N, 2] for them."""
        ids = ids.long()
        ranks = self.ranks[ids]
        shift, stride = drawn.view(-1, 2, *[1] * (ids.dim() - 1)).unbind(1)
        return torch.where(ranks > 0, len(self.ranks) - POOL + (shift + stride * ranks) % POOL, ids)
