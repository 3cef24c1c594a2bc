"""Agents that learn nothing: the floor of every comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class RandomTeam:
    """Every agent draws uniformly, with the `act` of a trained team.

    Args:
        num_agents: n.
        num_actions: A.
        seed: of the draws.
        obey_mask: draw among the legal actions only; by default among all (an illegal one does nothing).
    """

    heeds: frozenset[str] = frozenset()

    def __init__(self, num_agents: int, num_actions: int, seed: int = 0, *, obey_mask: bool = False) -> None:
        self.num_agents = num_agents
        self.num_actions = num_actions
        self.obey_mask = obey_mask
        self._rng = np.random.default_rng(seed)

    def initial_memory(self, num_envs: int) -> None:
        """It remembers nothing."""

    def act(
        self, obs: Mapping[str, Any], memory: None = None, info: Mapping[str, Any] | None = None, greedy: bool = False
    ) -> tuple[Any, None]:
        """Actions [B, n] int64 for a vector env's observation, {agent: int} for a single env's dict of dicts."""
        if isinstance(next(iter(obs.values()), None), Mapping):
            return {agent: int(self._draw(seen["action_mask"][None])[0]) for agent, seen in obs.items()}, None
        return self._draw(obs["action_mask"]), None

    def _draw(self, mask: np.ndarray) -> np.ndarray:
        """Actions [...] for masks [..., A]."""
        if not self.obey_mask:
            return self._rng.integers(self.num_actions, size=mask.shape[:-1], dtype=np.int64)
        return np.where(mask != 0, self._rng.random(mask.shape), -1.0).argmax(-1)
