"""Who takes which target: what is needed, and the division of tasks of least total cost."""

from __future__ import annotations

import numpy as np
from numba import njit

from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET

IMPOSSIBLE = 1e7
"""Cost of what cannot be done: far above all costs of what can, yet small enough to leave their differences exact."""


@njit
def survey(side, n, k, actors, where, useful, targets):
    """Take stock of a game, actors [E, NUM_COLUMNS], on an interior of side × side cells.

    Args:
        side, n, k: width of the interior; agents and monsters of the game.
        actors: [E, NUM_COLUMNS], its entities.
        where: [E], filled with cells (row · side + column of the interior, from 0).
        useful: [E], filled with whether an item beats a target that lives.
        targets: [n], filled with the slots of these targets.

    Returns:
        How many targets live.
    """
    count = 0
    for e in range(len(actors)):
        where[e] = (actors[e, ROW] - 1) * side + actors[e, COLUMN] - 1
        useful[e] = False
        if n <= e < n + k and actors[e, PRESENT] and actors[e, TARGET]:
            targets[count] = e
            count += 1
    for i in range(n + k, len(actors)):
        for j in range(count):
            useful[i] |= actors[i, ELEMENT] == actors[targets[j], ELEMENT]
    return count


@njit
def irreplaceable(a, n, k, actors, useful):
    """Whether agent a holds the last item of an element that a living target needs."""
    held = actors[a, HELD]
    if held < 0 or not useful[held]:
        return False
    for i in range(n + k, len(actors)):
        if actors[i, PRESENT] and actors[i, ELEMENT] == actors[held, ELEMENT]:
            return False
    for other in range(n):
        theirs = actors[other, HELD]
        if other != a and actors[other, PRESENT] and theirs >= 0 and actors[theirs, ELEMENT] == actors[held, ELEMENT]:
            return False
    return True


@njit
def assign(costs, choice):
    """Give each agent at most one task and each task at most one agent: as many as possible, at the least total cost.

    Shortest augmenting paths with potentials (Kuhn 1955, Munkres 1957), cubic in n. Costs alone decide; only between
    assignments of equal cost does the order of the agents.

    Args:
        costs: [n, n] float64, agents × tasks: IMPOSSIBLE where an agent cannot do it, 0 for a task that is not there.
        choice: [n] int64, filled with each agent's task, which may be one that is impossible or not there.
    """
    n = len(costs)
    of_agent, of_task = np.zeros(n + 1), np.zeros(n + 1)  # potentials; number 0 is a place to start from
    owner, before = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    slack, used = np.zeros(n + 1), np.zeros(n + 1, np.bool_)
    for agent in range(1, n + 1):
        owner[0], task = agent, 0
        slack[:] = np.inf
        used[:] = False
        while owner[task] != 0:
            used[task] = True
            step, following = np.inf, 0
            for other in range(1, n + 1):
                if not used[other]:
                    reduced = costs[owner[task] - 1, other - 1] - of_agent[owner[task]] - of_task[other]
                    if reduced < slack[other]:
                        slack[other] = reduced
                        before[other] = task
                    if slack[other] < step:
                        step, following = slack[other], other
            for other in range(n + 1):
                if used[other]:
                    of_agent[owner[other]] += step
                    of_task[other] -= step
                else:
                    slack[other] -= step
            task = following
        while task != 0:
            owner[task] = owner[before[task]]
            task = before[task]
    for task in range(1, n + 1):
        choice[owner[task] - 1] = task - 1
