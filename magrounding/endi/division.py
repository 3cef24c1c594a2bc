"""Division: every agent splits the entities that it sees into those for itself and those for others (EnDi, sec. 4.1).

The masks are those of a hard straight-through Gumbel-Softmax over two channels at temperature 1. Softmax and argmax of
two numbers depend on their difference alone, and the difference of two Gumbel variables is logistic: so the noise of a
place is one logistic number. Zero noise is the argmax of the logits, the mask without chance.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from magrounding.endi.places import Places

NOTHING, LEFT, TAKEN = -1, 0, 1
"""Values of `Division.taken`: no entity, left to others, taken for oneself."""

_SMALLEST = 1e-6
"""Bound of the uniform numbers behind the noise: logistic ones stay within ±14, which float16 holds."""


class Division(NamedTuple):
    """Division of the entities of N observations.

    Attributes:
        places: P of each.
        difference: [N, P] float32, logit of self minus logit of others, without noise.
        own, others: [N, P] float32 masks of the policy and of the model of the others, 1 for visible. Where they can
            hide something they are 0 or 1 and add up to 1, with the gradient of the soft sample; elsewhere 1.
    """

    places: Places
    difference: Tensor
    own: Tensor
    others: Tensor

    def taken(self, height: int, width: int) -> Tensor:
        """Return [N, H, W] int8 of TAKEN, LEFT and NOTHING; of two entities in a cell, the one taken counts."""
        places = self.places
        says = torch.where(places.is_entity, self.own.detach().to(torch.int8), NOTHING)
        cells = says.new_full((len(says), height * width), NOTHING)
        cells.scatter_reduce_(1, places.row * width + places.column, says, "amax")
        return cells.view(-1, height, width)


def divide(logits: Tensor, places: Places, noise: Tensor | None = None) -> Division:
    """Sample a division.

    Args:
        logits: [N, P, 2], of self and of others.
        places: P of each observation.
        noise: [N, P] of `draw_noise`, or None for the argmax.
    """
    logits = logits.float()
    difference = logits[..., 0] - logits[..., 1]
    noisy = difference if noise is None else difference + noise.float()
    soft = noisy.sigmoid()
    hard, through = (noisy >= 0).float(), soft - soft.detach()
    own = torch.where(places.can_hide, hard + through, 1.0)
    others = torch.where(places.can_hide, (1 - hard) - through, 1.0)
    return Division(places, difference, own, others)


def draw_noise(shape: tuple[int, ...], generator: torch.Generator | None = None) -> Tensor:
    """Draw logistic noise, rounded to float16, as it is recorded."""
    return torch.rand(shape, generator=generator).logit(_SMALLEST).half()
