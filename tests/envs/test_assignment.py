"""Work is divided at the least total cost."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from magrounding.envs.assignment import IMPOSSIBLE, assign


def test_assignments_cost_the_least():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 5):
        for _ in range(50):
            costs, choice = rng.integers(1, 6, (n, n)).astype(float), np.full(n, -1)
            costs[rng.random(costs.shape) < 0.2] = IMPOSSIBLE
            assign(costs, choice)
            rows, columns = linear_sum_assignment(costs)
            assert sorted(choice) == list(range(n))
            assert costs[np.arange(n), choice].sum() == costs[rows, columns].sum()
