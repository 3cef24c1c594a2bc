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
    coverage, conflicts = division_shares(taken, alive)
    return [
        {"coverage": _mean(own), "conflicts": _mean(shared)} for own, shared in zip(coverage, conflicts, strict=True)
    ]


def division_shares(taken: np.ndarray, alive: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for every step: shares [n, …] of an agent's entities that it takes, and that somebody else takes too.

    Args:
        taken, alive: as in `describe_divisions`.

    Returns:
        Both nan where the agent is dead or sees no entity.
    """
    taken = np.where(alive[..., None, None], taken, NOBODY)
    own = taken == TAKEN
    seen = (taken >= LEFT).sum((-2, -1))
    seen = np.where(seen > 0, seen, np.nan)
    return own.sum((-2, -1)) / seen, (own & (own.sum(0) > 1)).sum((-2, -1)) / seen


def _mean(shares: np.ndarray) -> float:
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if known.size else 0.0
