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
MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
"""Rows and columns of stay, up, down, left, right."""


class Reader(nn.Module):
    """Flat observations [..., D] → features [..., F]: some for each move, in the order of `MOVES`, and some of all.

    Args:
        spec: the world: which ids are no things, how many ids there are, how wide the map is.
        layout: where each field lies in an observation.
        words, each: sizes of an embedding, and of what is said of a thing and of a move.
    """

    is_thing: Tensor
    moves: Tensor

    def __init__(self, spec: EnvSpec, layout: Layout, words: int = 32, each: int = 16) -> None:
        super().__init__()
        self.layout, self.width = dict(layout), spec.grid.width
        self.features = self.num_outputs = len(MOVES) * each + 2 * each  # AgileRL asks for `num_outputs`
        is_thing = torch.ones(spec.vocabulary_size, dtype=torch.int8)
        is_thing[[*spec.grid.scenery_ids, spec.grid.avatar_ids[0]]] = 0
        self.register_buffer("is_thing", is_thing)
        self.register_buffer("moves", torch.tensor(MOVES))
        self.embedding = nn.Embedding(spec.vocabulary_size, words, padding_idx=0)
        self.held = nn.Linear(words, each)
        self.thing = nn.Sequential(nn.Linear(words + 1 + each, 2 * each), nn.ReLU(), nn.Linear(2 * each, each))
        self.move = nn.Sequential(nn.Linear(each + 4, each), nn.ReLU(), nn.Linear(each, each), nn.ReLU())

    def forward(self, flat: Tensor) -> Tensor:
        seen = unflatten(flat.reshape(-1, flat.shape[-1]), self.layout)
        cells = seen["grid"].flatten(1, 2).long()  # [B, H * W, K]
        there, place = self.is_thing[cells[..., 0]].topk(THINGS, dim=1)
        there = there.unsqueeze(-1)
        things = cells.gather(1, place.unsqueeze(-1).expand(-1, -1, cells.shape[-1]))

        manual = self.embedding(seen["manual"].long())  # [B, S, L, E]
        found, told = self.ask(things, manual)
        held, told_held = self.ask(seen["inventory"].long().unsqueeze(1), manual)
        relation = (told + told_held).max(-1, keepdim=True).values  # 2 where one statement speaks of both, else less
        relation = 8 * (relation - 1.5) * (seen["inventory"] > 0).any(-1).view(-1, 1, 1)
        own = self.held(held).relu()
        what = self.thing(torch.cat([found / 4, relation, own.expand(-1, THINGS, -1)], -1)) * there  # [B, N, F]

        offset = torch.stack([place // self.width, place % self.width], -1) - seen["position"].unsqueeze(1)
        now = offset.abs().sum(-1).unsqueeze(1)  # [B, 1, N]
        then = (offset.unsqueeze(1) - self.moves.view(1, -1, 1, 2)).abs().sum(-1)  # [B, moves, N]
        far = torch.stack([(then < now).float(), (then > now).float(), (then == 0).float(), 1 / (1 + then)], -1)
        moves = self.move(torch.cat([what.unsqueeze(1).expand(-1, len(MOVES), -1, -1), far], -1)) * there.unsqueeze(1)
        parts = [moves.sum(2).flatten(1), what.sum(1), own.squeeze(1)]
        return torch.cat(parts, -1).reshape(*flat.shape[:-1], self.features)

    def ask(self, ids: Tensor, manual: Tensor) -> tuple[Tensor, Tensor]:
        """Words [B, N, K] and the manual [B, S, L, E] → their sum [B, N, E], and how near each statement is [B, N, S].

        A statement is as near as the nearest pair of a word of the one and a word of the other.
        """
        words = self.embedding(ids)
        pairs = words.flatten(1, 2) @ manual.flatten(1, 2).mT / words.shape[-1]  # [B, N * K, S * L]
        return words.sum(2), pairs.unflatten(2, manual.shape[1:3]).amax(-1).unflatten(1, ids.shape[1:]).amax(2)
