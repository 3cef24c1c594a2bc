"""Oracle: a scripted team that reads the world's state, the ceiling of reports and a teacher for imitation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm.arrays import STEP
from magrounding.envs.rtfm.evasion import label_moving
from magrounding.envs.rtfm.paths import label_stationary
from magrounding.envs.rtfm.pursuit import solve_pursuit
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import ConfigurationError
from magrounding.seeding import ORDER, below
from magrounding.vector import WorldVectorEnv

FIRST_DRAW = 1 << 32
"""The oracle draws from the stream ORDER from this counter on, where the world never comes."""


class Oracle:
    accepts_rows = True

    def __init__(self, env: WorldVectorEnv | WorldEnv) -> None:
        world = getattr(getattr(env, "unwrapped", env), "world", None)
        if not isinstance(world, RTFMWorld):
            raise ConfigurationError(f"this oracle plays RTFM and rock-paper-scissors, not {type(env).__name__}")
        self._env = env
        self._world = world
        self._single = not isinstance(env, WorldVectorEnv)
        self._labels = np.zeros((world.num_envs, world.num_agents, len(world.action_names)), np.bool_)
        self._actions = np.zeros((world.num_envs, world.num_agents), np.int64)
        self._every = np.arange(world.num_envs)
        rules = world._rules
        self._pursuit = (
            solve_pursuit(rules.size - 2, rules.chase_squared, rules.monsters_first) if rules.moving else None
        )

    def initial_memory(self, num_envs: int) -> None:
        """It remembers nothing."""

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """labels [B, n, A] bool"""
        return self._label(self._every if rows is None else rows).copy()

    def act(self, obs: Any, memory: None = None, info: Any = None, greedy: bool = True, rows: np.ndarray | None = None):
        rows = self._every if rows is None else rows
        _draw(rows, self._label(rows), self._world._games.keys, self._world._games.scalars, self._actions)
        if self._single:
            actions = self._actions[0].tolist()
            return {agent: actions[i] for i, agent in enumerate(self._env.possible_agents) if agent in self._env.agents}, None
        return self._actions.copy(), None

    def _label(self, rows: np.ndarray) -> np.ndarray:
        rules, entities = self._world._rules, self._world._games.entities
        if self._pursuit is None:
            label_stationary(rows, rules, entities, self._labels)
        else:
            label_moving(rows, rules, self._pursuit, entities, self._labels)
        return self._labels


@njit(cache=True)
def _draw(rows, labels, keys, scalars, actions):
    """One of the best actions [B, n] for each agent, uniformly: decided by seed, episode, step and agent alone."""
    n, moves = labels.shape[1:]
    for b in rows:
        for a in range(n):
            count = 0
            for move in range(moves):
                count += labels[b, a, move]
            pick = below(keys[b, ORDER], FIRST_DRAW + scalars[b, STEP] * n + a, count)
            for move in range(moves):
                if labels[b, a, move]:
                    if pick == 0:
                        actions[b, a] = move
                    pick -= 1
