"""Which words of a goal a statement has in the same phrase: beside the same neighbour."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.relread.kernels import suits
from magrounding.jit import cached_njit


def shared_phrases(manual: Tensor, goal: Tensor) -> Tensor:
    """[U, S, G] bool: each word of the goal that a statement has next to the word that is next to it in the goal.

    Args:
        manual: [U, S, L] ids, 0 is padding.
        goal: [U, G] ids.
    """
    if suits(manual, goal):
        shared = torch.zeros(*manual.shape[:2], goal.shape[1], dtype=torch.bool)
        _mark(manual.contiguous().numpy(), goal.contiguous().numpy(), shared.numpy())
        return shared
    same = (manual.unsqueeze(3) == goal[:, None, None]) & (goal != 0)[:, None, None]  # [U, S, L, G]
    pair = (same[:, :, :-1, :-1] & same[:, :, 1:, 1:]).any(2)  # [U, S, G - 1], begins at each word of the goal
    return F.pad(pair, (0, 1)) | F.pad(pair, (1, 0))


@cached_njit(nogil=True)
def _mark(manual, goal, shared):
    top = 0
    for word in goal.flat:
        top = max(top, word)
    asked = np.zeros(top + 1, np.bool_)  # words of the goal at hand: few of a manual's
    for u in range(len(manual)):
        for word in goal[u]:
            asked[word] = word != 0
        for s in range(manual.shape[1]):
            for at in range(manual.shape[2] - 1):
                first, second = manual[u, s, at], manual[u, s, at + 1]
                if first > top or second > top or not asked[first] or not asked[second]:
                    continue
                for g in range(goal.shape[1] - 1):
                    if goal[u, g] == first and goal[u, g + 1] == second:
                        shared[u, s, g] = shared[u, s, g + 1] = True
        for word in goal[u]:
            asked[word] = False
