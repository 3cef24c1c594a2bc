"""Pursuit: the entity that each agent comes nearer to, judged by its moves alone, and conflicts of two agents.

Ding et al. (2023, section 5.2) argue with subgoal conflicts but say nothing of how to count them for agents that divide
nothing. This counts for any team, random ones too: masks, networks and texts have no part in it.

An agent pursues the nearest of the entities that its move brought it nearer to; one that came nearer to none pursues
nothing. It takes or fights next what it pursues by this measure in 70 % of such steps in S5 of two-agent RTFM,
76 % in S1 and 94 % in S2 of two-agent MESSENGER (oracles). So some conflicts are none: read the numbers beside those of
the oracle, who gives everyone a target of its own, and of the random team.
"""

from __future__ import annotations

import numpy as np

NOTHING = -1


def pursued(before: np.ndarray, after: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the entity that each agent pursues with a move.

    Args:
        before, after: [R, n, 2] row and column of the agents, row -1 for the dead.
        places: [R, E, 2] of the entities before the move, row -1 for what is not there.

    Returns:
        [R, n] index of an entity (of several equally near the first), or NOTHING.
    """
    was, now = (np.abs(agents[:, :, None] - places[:, None]).sum(3) for agents in (before, after))  # [R, n, E]
    lives = (before[..., 0] >= 0) & (after[..., 0] >= 0)
    nearer = lives[..., None] & (places[:, None, :, 0] >= 0) & (now < was)
    return np.where(nearer.any(2), np.where(nearer, now, np.inf).argmin(2), NOTHING)


def conflicts(goals: np.ndarray) -> np.ndarray:
    """Return [pairs] bool, whether two agents pursue the same entity, of pairs in which both pursue something.

    Args:
        goals: [R, n] of `pursued`.
    """
    one, other = (goals[:, agents] for agents in np.triu_indices(goals.shape[1], 1))
    return (one == other)[(one != NOTHING) & (other != NOTHING)]
