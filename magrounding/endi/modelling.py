"""Agent modelling: what the others do, told from the entities that were left to them (EnDi, section 4.2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.policy import Others


def modelling_loss(logits: Tensor, others: Others) -> tuple[Tensor, Tensor]:
    """L_sup of each observation, and how often its most likely guess was right.

    Whoever did not act is left out of both.

    Args:
        logits: [N, n − 1, A], of what each of the others does.
        others: what they did, [N, n − 1].

    Returns:
        The cross-entropies, summed over the others [N], and the accuracy [N], nan where nobody acted.
    """
    surprise = F.cross_entropy(logits.transpose(1, 2), others.action, reduction="none")
    right = ((logits.argmax(-1) == others.action) & others.acted).sum(1)
    return torch.where(others.acted, surprise, 0.0).sum(1), right / others.acted.sum(1)
