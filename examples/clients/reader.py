"""A small reader in plain torch, for any client: flat observations in, features of what matters next out.

Words are embedded once, for the map, the manual and the bag alike. What lies in a cell, and what the agent holds, ask
the manual's statements by the dot product of their words; what they are answered is put beside them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from magrounding.adapters import unflatten
from magrounding.adapters.tensors import Layout
from magrounding.spec import EnvSpec

THINGS = 6
"""How many occupied cells are looked at."""


class Reader(nn.Module):
    """Flat observations [..., D] → features [..., F].

    Args:
        spec: the world: which ids are no things, how many ids there are, how wide the map is.
        layout: where each field lies in an observation.
        words, features: sizes of an embedding and of what comes out.
    """

    def __init__(self, spec: EnvSpec, layout: Layout, words: int = 32, features: int = 64) -> None:
        super().__init__()
        self.layout, self.features, self.width = dict(layout), features, spec.grid.width
        is_thing = torch.ones(spec.vocabulary_size, dtype=torch.int8)
        is_thing[[*spec.grid.scenery_ids, spec.grid.avatar_ids[0]]] = 0
        self.register_buffer("is_thing", is_thing)
        self.embedding = nn.Embedding(spec.vocabulary_size, words, padding_idx=0)
        self.scale = words**-0.5
        self.own = nn.Linear(2 * words, features)
        self.thing = nn.Linear(2 * words + 4 + 9, features)
        self.both = nn.Sequential(nn.ReLU(), nn.Linear(features, features), nn.ReLU())
        self.joint = nn.Sequential(nn.Linear(3 * features, features), nn.ReLU())

    def forward(self, flat: Tensor) -> Tensor:
        seen = unflatten(flat.reshape(-1, flat.shape[-1]), self.layout)
        cells = seen["grid"].flatten(1, 2).long()  # [B, H * W, K]
        there, place = self.is_thing[cells[..., 0]].topk(THINGS, dim=1)
        things = cells.gather(1, place.unsqueeze(-1).expand(-1, -1, cells.shape[-1]))
        cell = torch.stack([place // self.width, place % self.width], -1)
        offset = cell - seen["position"].unsqueeze(1)

        statements = self.embedding(seen["manual"].long()).sum(-2)  # [B, S, E]
        held = self.read(seen["inventory"].long().unsqueeze(1), statements)
        found = self.read(things, statements)
        pairs = [(a * b).sum(-1, keepdim=True) * self.scale for a in found for b in held]
        near = [offset / self.width, offset.sign(), offset == 0, offset.abs() <= 1, offset.abs().sum(-1, keepdim=True)]
        own = self.own(torch.cat(held, -1))
        each = self.both(self.thing(torch.cat([*found, *pairs, *near], -1)) + own) * there.unsqueeze(-1)
        together = torch.cat([each.max(1).values, each.mean(1), own.squeeze(1)], -1)
        return self.joint(together).reshape(*flat.shape[:-1], self.features)

    def read(self, ids: Tensor, statements: Tensor) -> tuple[Tensor, Tensor]:
        """Words [B, N, K] and statements [B, S, E] → their embedding and what is stated of them, [B, N, E] each."""
        words = self.embedding(ids).sum(-2)
        weights = (words @ statements.mT * self.scale).softmax(-1)
        return words, weights @ statements
