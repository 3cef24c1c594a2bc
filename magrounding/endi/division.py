"""Division: every agent splits the entities that it sees into those for itself and those for others (EnDi, sec. 4.1).

It decides on places: the cells of a map, or the things on it. The masks are those of a hard straight-through
Gumbel-Softmax over two channels at temperature 1. Softmax and argmax of two numbers depend on their difference alone,
and the difference of two Gumbel variables is logistic: so the noise of a place is one logistic number. Zero noise is
the argmax of the logits, the mask without chance.

The regularisers `num` and `dis` (section 5.2) count with these masks, so their gradient is that of the soft samples.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

NOTHING, LEFT, TAKEN = -1, 0, 1
"""Values of `Division.taken`: no entity, left to others, taken for oneself."""

REGULARIZERS = ("num", "dis", "none")

FARTHEST = 1.0
"""Distance of a dead agent."""

_SMALLEST = 1e-6
"""Bound of the uniform numbers behind the noise: logistic ones stay within ±14, which float16 holds."""


class Places(NamedTuple):
    """P places of N observations."""

    row: Tensor  # [N, P] int64
    column: Tensor  # [N, P] int64
    # [N, P] bool, an entity is there: what agents divide, and what regularisers and diagnostics count
    is_entity: Tensor
    can_hide: Tensor  # [N, P] bool, a mask may hide what is there; elsewhere masks are 1


class Division(NamedTuple):
    """Division of the entities of N observations.

    Where masks can hide something they are 0 or 1 and add up to 1, with the gradient of the soft sample; elsewhere 1.
    """

    places: Places  # P of each
    difference: Tensor  # [N, P] float32, logit of self minus logit of others, without noise
    own: Tensor  # [N, P] float32 mask of the policy, 1 for visible
    others: Tensor  # [N, P] float32 mask of the model of the others

    def taken(self, height: int, width: int) -> Tensor:
        """Return [N, H, W] int8 of TAKEN, LEFT and NOTHING; of two entities in a cell, the one taken counts."""
        places = self.places
        says = torch.where(places.is_entity, self.own.detach().to(torch.int8), NOTHING)
        cells = says.new_full((len(says), height * width), NOTHING)
        cells.scatter_reduce_(1, places.row * width + places.column, says, "amax")
        return cells.view(-1, height, width)


def divide(logits: Tensor, places: Places, noise: Tensor | None = None) -> Division:
    """Sample a division by logits [N, P, 2] of self and others and `draw_noise` [N, P]; without noise, the argmax."""
    logits = logits.float()
    difference = logits[..., 0] - logits[..., 1]
    noisy = difference if noise is None else difference + noise.float()
    soft = noisy.sigmoid()
    hard, through = (noisy >= 0).float(), soft - soft.detach()
    own = torch.where(places.can_hide, hard + through, 1.0)
    others = torch.where(places.can_hide, (1 - hard) - through, 1.0)
    return Division(places, difference, own, others)


def draw_noise(shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    """Draw logistic noise, rounded to float16, as it is recorded."""
    return torch.rand(shape, generator=generator).logit(_SMALLEST).half()


def cells(is_entity: Tensor, can_hide: Tensor) -> Places:
    """Return all cells of maps, row by row; is_entity and can_hide [N, H, W] bool."""
    n, height, width = is_entity.shape
    cell = torch.arange(height * width, device=is_entity.device).expand(n, -1)
    return Places(cell // width, cell % width, is_entity.flatten(1), can_hide.flatten(1))


def shown_entities(grid: Tensor, occupant: Tensor, avatar: Tensor, width: int) -> Tensor:
    """Return [N, H, W] bool: a cell of grid [N, H, W, K] shows an entity and no agent.

    The first of the `width` ids of an occupant decides: `occupant`, `avatar` [V] bool.
    """
    first = grid[..., ::width].int()
    is_avatar = avatar[first]
    return (occupant[first] & ~is_avatar).any(-1) & ~is_avatar.any(-1)


def distance_to_nearest(places: Places, agents: Tensor, height: int, width: int) -> Tensor:
    """Return [N, P] float32: Manhattan distance to the nearest agent alive, in [0, 1] (EnDi, section 4.1).

    Each axis counts as a part of its length, so weights of losses do not depend on the size of the map. Of `agents`
    [N, k, 2] the dead have row −1.
    """
    if not agents.shape[1]:
        return torch.full(places.row.shape, FARTHEST, device=places.row.device)
    rows, columns = (agents[:, :, axis, None].float() for axis in (0, 1))  # [N, k, 1]
    down = (places.row.unsqueeze(1) - rows).abs() / height
    right = (places.column.unsqueeze(1) - columns).abs() / width
    return torch.where(rows >= 0, (down + right) / 2, FARTHEST).amin(1)


def distances(places: Places, position: Tensor, teammates: Tensor, height: int, width: int) -> list[Tensor]:
    """Return `distance_to_nearest` of oneself, at `position` [N, 2], and of the others."""
    return [distance_to_nearest(places, agents, height, width) for agents in (position.unsqueeze(1), teammates)]


def num(division: Division, num_agents: int, *, squared: bool = False) -> Tensor:
    """Return | n_self − n_others / (n − 1) | [N], 0 where agents take as many entities; `squared` as released."""
    entity = division.places.is_entity
    own, others = (mask.mul(entity).sum(1) for mask in (division.own, division.others))
    gap = own - others / (num_agents - 1)
    return gap.square() if squared else gap.abs()


def dis(division: Division, position: Tensor, teammates: Tensor, height: int, width: int) -> Tensor:
    """Return [N]: distances of entities to their owner, oneself or the nearest other, summed.

    Distances are |dx| / W + |dy| / H; those of the dead are 2. The paper's formula misprints the second axis.
    """
    places = division.places
    near, far = distances(places, position, teammates, height, width)
    return 2 * ((division.own * near + division.others * far) * places.is_entity).sum(1)
