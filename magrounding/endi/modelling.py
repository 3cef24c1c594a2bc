"""Agent modelling: what the others do, foreseen from the entities that were left to them (EnDi, section 4.2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def modelling_loss(logits: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """L_sup of each observation, and how often its most likely guess was right.

    Those that did not act are left out of both.

    Args:
        logits: [N, n − 1, A], of what each of the others does.
        others: [N, n − 1], what they did, −1 for those that did not act.

    Returns:
        The cross-entropies, summed over the others [N], and the accuracy [N], nan where none of them acted.
    """
    action, acted = others.clamp(min=0), others >= 0
    surprise = F.cross_entropy(logits.transpose(1, 2), action, reduction="none")
    right = ((logits.argmax(-1) == action) & acted).sum(1)
    return torch.where(acted, surprise, 0.0).sum(1), right / acted.sum(1)
