"""Things in sight and the egocentric map around an agent, computed from its few occupied cells."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.relread import kernels


class Things(NamedTuple):
    """M things of each observation: first the entities of the grid, then teammates with what they hold."""

    words: Tensor  # [N, M + 1, W] int32 ids; the last are those of the agent's own inventory
    row: Tensor  # [N, M] int64
    column: Tensor  # [N, M] int64
    exists: Tensor  # [N, M] bool
    is_ally: Tensor  # [N, M] bool


def with_presence(things: Things, features: Tensor) -> Tensor:
    """Return [N, M, C + 2]: features [N, M, C] of things, whether they are teammates, and 1."""
    ally = (things.is_ally & things.exists).to(features.dtype).unsqueeze(-1)
    return torch.cat((features, ally, torch.ones_like(ally)), -1)


def look(base: Tensor, known: Tensor, mixing: Tensor, patterns: Tensor, near: Tensor, place: Tensor) -> Tensor:
    """Apply a layer to an egocentric map with few things on it, see `Relread.look`; arguments as of `kernels.look`."""
    if kernels.suits(known, mixing):
        return kernels.look(base, known, mixing, patterns, near, place)
    cell, which = place.unbind(-1)
    there = F.one_hot(which + 1, len(near) + 1)[..., 1:].to(known.dtype)  # [N, M, 5]
    on_cells = torch.bmm(there.transpose(1, 2), known).flatten(1) @ near.flatten(0, 1)
    return base + on_cells + ((known @ mixing) * F.embedding(cell, patterns, len(patterns) - 1)).sum(1)  # of [N, M, H]


def border_distances(position: Tensor, shape: torch.Size, reach: int) -> Tensor:
    """Return one-hot distances [N, 4 (reach + 1)] of position [N, 2] from the borders, which are up to `reach`."""
    height, width = shape
    row, column = position.long().unbind(-1)
    distances = torch.stack((row, height - 1 - row, column, width - 1 - column), 1)
    return F.one_hot(distances.clamp(0, reach), reach + 1).flatten(1).float()
