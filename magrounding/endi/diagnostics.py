"""What divisions look like from outside: how much everybody takes, and how much of it somebody else takes too."""

from __future__ import annotations

import numpy as np

from magrounding.endi.division import LEFT, NOBODY, TAKEN


def describe_divisions(taken: np.ndarray, alive: np.ndarray) -> list[dict[str, float]]:
    """Facts about each agent's divisions.

    Args:
        taken: [n, …, H, W] int8, see `Division.taken`.
        alive: [n, …] bool; the dead divide nothing.

    Returns:
        For each agent "coverage", the mean share of entities that it takes, and "conflicts", the share of entities that
        somebody else takes too; of the steps in which it lives and sees any, 0 without such a step.
    """
    taken = np.where(alive[..., None, None], taken, NOBODY).reshape(len(taken), -1, taken.shape[-2] * taken.shape[-1])
    claims = (taken == TAKEN).sum(0)  # [steps, cells]
    return [
        {
            "coverage": _mean_share(own == TAKEN, own >= LEFT),
            "conflicts": _mean_share((own == TAKEN) & (claims > 1), own >= LEFT),
        }
        for own in taken
    ]


def _mean_share(part: np.ndarray, whole: np.ndarray) -> float:
    """Mean over the steps with any of `whole` [steps, cells] of the share that is in `part`."""
    counts = whole.sum(1)
    return float((part.sum(1)[counts > 0] / counts[counts > 0]).mean()) if counts.any() else 0.0
