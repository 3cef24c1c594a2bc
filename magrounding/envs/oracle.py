"""WorldOracle: base of the oracles of compiled worlds, which read the world's state, never its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import numpy as np

from magrounding import seeding
from magrounding.envs import compiled
from magrounding.envs.compiled import CompiledWorld
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.vector import WorldVectorEnv
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.jit import cached_njit
from magrounding.vector import VectorEnv, check_rows

_FIRST_DRAW = 1 << 32
"""Oracles draw from the stream ORDER from this counter on, where no world ever comes."""

World = TypeVar("World", bound=CompiledWorld)


class WorldOracle(ABC, Generic[World]):
    """A scripted team that knows all best moves: the ceiling of reports and a teacher for imitation.

    Args:
        env: a vector env, or a single one (`magrounding.make`).
        world: the kind of world that it plays.
        plays: names of the environments, for an error.

    Attributes:
        costs_to_go: [B, n, A] float32 in [0, 1], which share of its chances each move loses, in the states that were
            labelled last; None for an oracle that cannot tell.

    Raises:
        ConfigurationError: an env of another world.
    """

    accepts_rows = True

    def __init__(self, env: VectorEnv | WorldEnv, world: type[World], plays: str) -> None:
        found = getattr(env, "world", None)
        if not isinstance(env, WorldVectorEnv | WorldEnv) or not isinstance(found, world):
            raise ConfigurationError(f"this oracle plays {plays}, not {getattr(env, 'id', env)!r}")
        self._env = env
        self._world = found
        self.costs_to_go: np.ndarray | None = None
        self._labels = np.zeros((found.num_envs, found.num_agents, found.spec.num_actions), np.bool_)
        self._actions = np.zeros((found.num_envs, found.num_agents), np.int64)
        self._every = np.arange(found.num_envs)

    @abstractmethod
    def _label(self, rows: np.ndarray) -> None:
        """Write the best moves in `rows` [R] to `self._labels` [B, n, A]: at least one, none masked."""

    def initial_memory(self, num_envs: int) -> None:
        """Return None: it has no memory."""

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return all best moves, see `Expert`; rows that are not asked for keep what was found before.

        Raises:
            CallOrderError: before the first reset, unless there are no `rows`, which only compiles what thinks.
            ConfigurationError: rows that do not exist.
        """
        chosen = self._every if rows is None else check_rows(rows, len(self._every))
        if len(chosen) and not self._world._games.keys.any():
            raise CallOrderError("call reset() before asking an oracle")
        self._label(chosen)
        return self._labels.copy()

    def act(
        self,
        obs: Any = None,
        memory: None = None,
        info: Any = None,
        greedy: bool = True,
        rows: np.ndarray | None = None,
    ) -> tuple[Any, None]:
        """Return one of each agent's best moves, drawn uniformly; the draw is decided by seed, episode and step.

        Args:
            obs, memory, info, greedy: as for trained teams; none of them is read.
            rows: [R] rows of a vector env to play; the others get any action.

        Returns:
            Actions [B, n] int64 of a vector env, or {agent: int} for the living agents of a single one; and None.
        """
        labels, games = self.best_actions(rows), self._world._games
        played = self._every if rows is None else check_rows(rows, len(self._every))
        _draw(played, labels, games.keys, games.scalars, self._actions)
        if isinstance(self._env, WorldEnv):
            chosen = dict(zip(self._env.possible_agents, self._actions[0].tolist(), strict=True))
            return {agent: chosen[agent] for agent in self._env.agents}, None
        return self._actions.copy(), None


def symmetries(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tabulate turns and reflections of a board of side × side = N cells: a table of one serves all that look alike.

    Symmetry k is the same turn or reflection on boards of every size, and number 0 changes nothing.

    Returns:
        [8, N + 1] where each symmetry takes a cell, cell N ("nowhere") staying; [N] the first symmetry that takes a
        cell to the representative of its orbit; [N] which orbit that is; [orbits] the representatives.
    """
    cells = side * side
    square = np.arange(cells).reshape(side, side)
    turned = np.stack([np.rot90(view, k).ravel() for view in (square, square.T) for k in range(4)])
    representatives, orbit = np.unique(turned.min(axis=0), return_inverse=True)
    nowhere = np.full((8, 1), cells)
    return np.concatenate([turned, nowhere], axis=1), turned.argmin(axis=0), orbit, representatives


@cached_njit(nogil=True)
def _draw(rows, labels, keys, scalars, actions):
    n, moves = labels.shape[1:]
    for b in rows:
        for a in range(n):
            count = 0
            for move in range(moves):
                count += labels[b, a, move]
            counter = _FIRST_DRAW + scalars[b, compiled.STEP] * n + a
            pick = seeding.below(keys[b, seeding.ORDER], counter, count)
            for move in range(moves):
                if labels[b, a, move]:
                    if pick == 0:
                        actions[b, a] = move
                    pick -= 1
