"""Places: what a division decides on, the cells of a map or the things on it, and their distances from agents."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FARTHEST = 1.0
"""Distance of a dead agent."""


class Places(NamedTuple):
    """P places of N observations.

    Attributes:
        row, column: [N, P] int64.
        is_entity: [N, P] bool, an entity is there: what agents divide, and what regularisers and diagnostics count.
        can_hide: [N, P] bool, a mask may hide what is there; elsewhere masks are 1.
    """

    row: Tensor
    column: Tensor
    is_entity: Tensor
    can_hide: Tensor


def cells(is_entity: Tensor, can_hide: Tensor) -> Places:
    """Return all cells of maps, row by row; is_entity and can_hide [N, H, W] bool."""
    n, height, width = is_entity.shape
    cell = torch.arange(height * width, device=is_entity.device).expand(n, -1)
    return Places(cell // width, cell % width, is_entity.flatten(1), can_hide.flatten(1))


def shown_entities(grid: Tensor, occupant: Tensor, avatar: Tensor, width: int) -> Tensor:
    """Return [N, H, W] bool: a cell shows an entity and no agent.

    Args:
        grid: [N, H, W, K] ids.
        occupant: [V] bool, ids that are neither padding nor scenery.
        avatar: [V] bool, ids of agents.
        width: ids of an occupant; its first decides.
    """
    first = grid[..., ::width].int()
    is_avatar = avatar[first]
    return (occupant[first] & ~is_avatar).any(-1) & ~is_avatar.any(-1)


def distance_to_nearest(places: Places, agents: Tensor, height: int, width: int) -> Tensor:
    """Return [N, P] float32: Manhattan distance to the nearest agent alive, in [0, 1] (EnDi, section 4.1).

    Each axis counts as a part of its length, so weights of losses do not depend on the size of the map.

    Args:
        places: P places.
        agents: [N, k, 2] row and column, row −1 for the dead.
        height, width: of the map.
    """
    if not agents.shape[1]:
        return torch.full(places.row.shape, FARTHEST, device=places.row.device)
    rows, columns = (agents[:, :, axis, None].float() for axis in (0, 1))  # [N, k, 1]
    down = (places.row.unsqueeze(1) - rows).abs() / height
    right = (places.column.unsqueeze(1) - columns).abs() / width
    return torch.where(rows >= 0, (down + right) / 2, FARTHEST).amin(1)
