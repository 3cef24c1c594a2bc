"""Regularisers of a division: `num` and `dis` (EnDi, section 5.2).

Both count with the straight-through masks, so their gradient is that of the soft samples.
"""

from __future__ import annotations

from torch import Tensor

from magrounding.endi.division import Division
from magrounding.endi.places import distance_to_nearest

REGULARIZERS = ("num", "dis", "none")


def num(division: Division, num_agents: int, *, squared: bool = False) -> Tensor:
    """[N]: | n_self − n_others / (n − 1) |, every agent takes as many entities.

    Args:
        division: of N observations.
        num_agents: n.
        squared: the square instead, as the released program has it.
    """
    entity = division.places.is_entity
    own, others = (mask.mul(entity).sum(1) for mask in (division.own, division.others))
    gap = own - others / (num_agents - 1)
    return gap.square() if squared else gap.abs()


def dis(division: Division, position: Tensor, teammates: Tensor, height: int, width: int) -> Tensor:
    """[N]: distances of entities to whom they were given, oneself or the nearest other, summed.

    Distances are |dx| / W + |dy| / H; those of the dead are 2. The paper's formula misprints the second axis.

    Args:
        division: of N observations.
        position: [N, 2] row and column.
        teammates: [N, n − 1, 2] likewise.
        height, width: of the map.
    """
    places = division.places
    near, far = (distance_to_nearest(places, who, height, width) for who in (position.unsqueeze(1), teammates))
    return 2 * ((division.own * near + division.others * far) * places.is_entity).sum(1)
