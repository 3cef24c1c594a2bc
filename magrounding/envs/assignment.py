"""Assignment of tasks to agents at the least total cost."""

import numpy as np
from numba import njit

IMPOSSIBLE = 1e7
"""Cost of what cannot be done: far above all costs of what can, yet small enough to leave their differences exact."""


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
