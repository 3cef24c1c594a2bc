"""Oracle: a scripted team that reads the world's state, the ceiling of reports and a teacher for imitation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit

from magrounding import seeding
from magrounding.envs.compiled import checksum
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm import arrays, dynamics, evasion, paths, planning, pursuit
from magrounding.envs.rtfm.arrays import STEP
from magrounding.envs.rtfm.pursuit import MAX_SIDE, Pursuit, symmetries
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.vector import VectorEnv, WorldVectorEnv

_FIRST_DRAW = 1 << 32
"""The oracle draws from the stream ORDER from this counter on, where the world never comes."""


class Oracle:
    """The best moves of every agent of RTFM, of multi-agent RTFM and of rock-paper-scissors, planned on the rules.

    It reads no text: it knows who the targets are, what beats them and how monsters choose, but not what they will
    choose. A plan is a function of the state alone. Every step the targets are divided anew by the assignment of least
    total cost, one for each agent; an agent's index matters for nothing but to break exact ties.

    Where monsters stand still (`paths`) the cost is the number of steps. All first moves of shortest safe paths are
    best, and an agent without a task stays. One agent loses only what cannot be won; several too, but in rare crowds.

    Where monsters chase (`evasion`) the cost is the fall of the logarithm of an agent's chances. These come from tables
    of one agent among two monsters on an empty map, solved by value iteration (`pursuit`); more monsters are put
    together pair by pair. A move is judged by the true odds of the next step and by this estimate from then on. With
    one agent that leaves out the items that an armed agent must walk around: on 6×6 it wins 0.942 of `simple`, where
    solving every layout with its items gives 0.946. Several agents plan apart, each as if all monsters were after it:
    a strong team, and no proof of how well a team could do. On maps wider than 10×10 an agent plans for the window of
    that size around it. The time limit is ignored, as games that can be won end long before.

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `rtfm`, `ma_rtfm` or `rock_paper_scissors`.

    Raises:
        ConfigurationError: another env.
    """

    accepts_rows = True

    def __init__(self, env: VectorEnv | WorldEnv) -> None:
        world = getattr(env, "world", None)
        if not isinstance(env, WorldVectorEnv | WorldEnv) or not isinstance(world, RTFMWorld):
            raise ConfigurationError(f"this oracle plays RTFM and rock-paper-scissors, not {getattr(env, 'id', env)!r}")
        self._env = env
        self._world = world
        self._labels = np.zeros((world.num_envs, world.num_agents, len(world.action_names)), np.bool_)
        self._actions = np.zeros((world.num_envs, world.num_agents), np.int64)
        self._every = np.arange(world.num_envs)
        rules = world._rules
        self._pursuit = None
        if rules.moving:
            self._pursuit = _solve_pursuit(min(rules.size - 2, MAX_SIDE), rules.chase_squared, rules.monsters_first)

    def initial_memory(self, num_envs: int) -> None:
        """It remembers nothing."""

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """All best moves of every agent, now.

        Args:
            rows: [R] games of a vector env to think about; by default all. The others keep what was found before.

        Returns:
            [B, n, A] bool, never empty and never a masked action; staying for the dead.
        """
        return self._label(rows).copy()

    def act(
        self,
        obs: Any = None,
        memory: None = None,
        info: Any = None,
        greedy: bool = True,
        rows: np.ndarray | None = None,
    ) -> tuple[Any, None]:
        """One of each agent's best moves, drawn uniformly; the draw is decided by seed, episode and step.

        Args:
            obs, memory, info, greedy: as for trained teams; none of them is read.
            rows: [R] games of a vector env to play; the others get any action.

        Returns:
            Actions [B, n] int64 of a vector env, or {agent: int} for the living agents of a single one; and None.
        """
        labels, games = self._label(rows), self._world._games
        _draw(self._every if rows is None else rows, labels, games.keys, games.scalars, self._actions)
        if isinstance(self._env, WorldEnv):
            chosen = dict(zip(self._env.possible_agents, self._actions[0].tolist(), strict=True))
            return {agent: chosen[agent] for agent in self._env.agents}, None
        return self._actions.copy(), None

    def _label(self, rows: np.ndarray | None) -> np.ndarray:
        rows = self._every if rows is None else rows
        rules, entities = self._world._rules, self._world._games.entities
        if not entities[:, : rules.agents, arrays.ROW].any():
            raise InvalidAction("call reset() before asking an oracle")
        if self._pursuit is None:
            _label_stationary(rows, rules, entities, self._labels)
        else:
            _label_moving(rows, rules, self._pursuit, entities, self._labels)
        return self._labels


@lru_cache(maxsize=8)
def _solve_pursuit(side: int, chase_squared: float, monsters_first: bool) -> Pursuit:
    """Tables of an interior of side × side cells; half a second for 10×10 maps."""
    turned, symmetry, orbit, representatives = symmetries(side)
    cells = side * side
    shape = (cells, cells, 1 if monsters_first else cells + 1)
    armed, evading = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    seeking = np.zeros((len(representatives), *shape), np.float32)
    _solve(side, chase_squared, monsters_first, representatives, armed, seeking, evading)
    return Pursuit(armed, seeking, evading, turned, symmetry, orbit, side)


def _entry_points(version: int):
    """The four kernels that Python calls, cached as those of `kernels` are: see there. The condition is always true."""

    @njit(cache=True, nogil=True)
    def label_stationary(*arguments):
        if version:
            paths.label_stationary(*arguments)

    @njit(cache=True, nogil=True)
    def label_moving(*arguments):
        if version:
            evasion.label_moving(*arguments)

    @njit(cache=True, nogil=True)
    def solve(*arguments):
        if version:
            pursuit.solve(*arguments)

    @njit(cache=True, nogil=True)
    def draw(rows, labels, keys, scalars, actions):
        n, moves = labels.shape[1:] if version else (0, 0)
        for b in rows:
            for a in range(n):
                count = 0
                for move in range(moves):
                    count += labels[b, a, move]
                pick = seeding.below(keys[b, seeding.ORDER], _FIRST_DRAW + scalars[b, STEP] * n + a, count)
                for move in range(moves):
                    if labels[b, a, move]:
                        if pick == 0:
                            actions[b, a] = move
                        pick -= 1

    return label_stationary, label_moving, solve, draw


_label_stationary, _label_moving, _solve, _draw = _entry_points(
    checksum((arrays, dynamics, evasion, paths, planning, pursuit, seeding))
)
