"""A small reader in plain torch, for any client: flat observations in, features of what matters next out.

Words are embedded once, for the map, the manual and the bag alike. Of each thing on the map the reader asks whether a
statement of the manual speaks of it and of what the agent holds: both share a word, or nearly, with that statement.
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
        self.num_outputs = features  # AgileRL asks for it by this name
        is_thing = torch.ones(spec.vocabulary_size, dtype=torch.int8)
        is_thing[[*spec.grid.scenery_ids, spec.grid.avatar_ids[0]]] = 0
        self.register_buffer("is_thing", is_thing)
        self.embedding = nn.Embedding(spec.vocabulary_size, words, padding_idx=0)
        self.own = nn.Linear(words, features)
        self.thing = nn.Linear(words + 1 + 9, features)
        self.both = nn.Sequential(nn.ReLU(), nn.Linear(features, features), nn.ReLU())
        self.joint = nn.Sequential(nn.Linear(3 * features, features), nn.ReLU())

    def forward(self, flat: Tensor) -> Tensor:
        seen = unflatten(flat.reshape(-1, flat.shape[-1]), self.layout)
        cells = seen["grid"].flatten(1, 2).long()  # [B, H * W, K]
        there, place = self.is_thing[cells[..., 0]].topk(THINGS, dim=1)
        things = cells.gather(1, place.unsqueeze(-1).expand(-1, -1, cells.shape[-1]))
        offset = torch.stack([place // self.width, place % self.width], -1) - seen["position"].unsqueeze(1)
        near = [offset / self.width, offset.sign(), offset == 0, offset.abs() <= 1, offset.abs().sum(-1, keepdim=True)]

        manual = self.embedding(seen["manual"].long())  # [B, S, L, E]
        found, told = self.ask(things, manual)
        held, told_held = self.ask(seen["inventory"].long().unsqueeze(1), manual)
        relation = (told + told_held).max(-1, keepdim=True).values
        own = self.own(held)
        each = self.both(self.thing(torch.cat([found, relation, *near], -1)) + own) * there.unsqueeze(-1)
        together = torch.cat([each.max(1).values, each.mean(1), own.squeeze(1)], -1)
        return self.joint(together).reshape(*flat.shape[:-1], self.features)

    def ask(self, ids: Tensor, manual: Tensor) -> tuple[Tensor, Tensor]:
        """Words [B, N, K] and the manual [B, S, L, E] → their sum [B, N, E], and how near each statement is [B, N, S].

        A statement is as near as the nearest pair of a word of the one and a word of the other.
        """
        words = self.embedding(ids)
        pairs = words.flatten(1, 2) @ manual.flatten(1, 2).mT / words.shape[-1]  # [B, N * K, S * L]
        return words.sum(2), pairs.unflatten(2, manual.shape[1:3]).amax(-1).unflatten(1, ids.shape[1:]).amax(2)
