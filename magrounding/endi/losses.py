"""Losses of EnDi: regularisers `num` and `dis` of a division (section 5.2), and agent modelling (section 4.2).

Regularisers count with the straight-through masks, so their gradient is that of the soft samples.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.endi.division import Division, distance_to_nearest

REGULARIZERS = ("num", "dis", "none")


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
    near, far = (distance_to_nearest(places, who, height, width) for who in (position.unsqueeze(1), teammates))
    return 2 * ((division.own * near + division.others * far) * places.is_entity).sum(1)


def modelling_loss(logits: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the cross-entropies L_sup, summed over the others [N], and the accuracy [N], nan where none acted.

    `logits` [N, n − 1, A] and actions `others` [N, n − 1] are of the others, −1 for those that did not act.
    """
    action, acted = others.clamp(min=0), others >= 0
    nll = F.cross_entropy(logits.transpose(1, 2), action, reduction="none")
    right = ((logits.argmax(-1) == action) & acted).sum(1)
    return torch.where(acted, nll, 0.0).sum(1), right / acted.sum(1)
