"""Oracle: a scripted team that reads the world's state, the ceiling of reports and a teacher for imitation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from magrounding.envs.messenger.arrays import EDGE, SIZE
from magrounding.envs.messenger.planning import label
from magrounding.envs.messenger.pursuit import Pursuit, solve
from magrounding.envs.messenger.world import MessengerWorld
from magrounding.envs.oracle import WorldOracle, symmetries
from magrounding.envs.parallel import WorldEnv
from magrounding.vector import VectorEnv


class Oracle(WorldOracle[MessengerWorld]):
    """The best moves of every agent of MESSENGER and of multi-agent MESSENGER, planned on the rules.

    It reads no text: it knows who is what and how each moves, but not where chance will take them. A plan is a function
    of the state alone. An agent without a message needs a message, one with a message a goal; every step these are
    divided anew, one for each agent, so that the product of all chances is the greatest. An agent's index matters for
    nothing but to break exact ties, and those whose part is done stay.

    A move is judged by the true odds of the entities' next moves, and from then on by tables (`pursuit`) of one agent,
    its target and one hostile entity, solved by value iteration; several hostile ones are put together as if they were
    independent. Left out are what comes after the message, that teammates draw entities away later on, that wandering
    entities block one another, and the time limit. One agent wins all of S1 and S2 and 0.994 of S3, where two chasers
    can still trap it between them. Three win all of S1 that can be won in time (0.84), 0.98 of S2, where they wait too
    long for a crowd to clear, and 0.96 of S4's test games, where three goals may chase them.

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `messenger` or `ma_messenger`.

    Raises:
        ConfigurationError: another env.
    """

    def __init__(self, env: VectorEnv | WorldEnv) -> None:
        super().__init__(env, MessengerWorld, "MESSENGER, for one agent or several")
        movements = self._world._tables.movements[:, :3]  # those of decoys are among them
        self._pursuit = _solve_pursuit(int(movements.min()), int(np.ptp(movements)) + 1)

    def _label(self, rows: np.ndarray) -> None:
        label(rows, self._world._rules, self._pursuit, self._world._games.entities, self._labels)


@lru_cache(maxsize=4)
def _solve_pursuit(first: int, ways: int) -> Pursuit:
    """Tables of `ways` movements from `first` on; nine of them, for three movements, take two seconds and 71 MB."""
    turned = symmetries(EDGE + 1)[0]
    _, symmetry, orbit, representatives = symmetries(SIZE)
    places = turned.shape[1] - 1
    value = np.zeros((ways, ways, len(representatives), places, places + 1), np.float32)
    solve(SIZE, first, representatives, symmetry, orbit, turned, value)
    return Pursuit(value, turned, symmetry, orbit, first)
