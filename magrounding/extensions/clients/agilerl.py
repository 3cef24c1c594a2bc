"""`BatchedVecEnv`: a whole vector env as one of AgileRL's vectorised multi-agent envs, in one process.

One env a process goes through AgileRL's own: `AsyncPettingZooVecEnv([lambda: for_tensors(env, dead="padded"), …])`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from magrounding.errors import ConfigurationError, needed
from magrounding.extensions.clients.tensors import flat_batch, flat_observation
from magrounding.simulators.spaces import MASK
from magrounding.vector import Info, Observation, VectorEnv

with needed("a vector env of AgileRL", "agilerl"):
    from agilerl.vector.pz_vec_env import PettingZooVecEnv

ByAgent = dict[str, Any]


class BatchedVecEnv(PettingZooVecEnv):
    """B envs of n agents for AgileRL's multi-agent algorithms.

    Observations, by agent, are [B, D] float32, laid out as `layout` says; `infos[agent]` has `action_mask` [B, A] and
    `won` [B], 1 where an episode was won in this step. The next begins in the step that ends one. An agent that
    is out observes zeros, has only action 0, and is done when its episode is.

    Args:
        vec: the envs, as `magrounding.make_vec` makes them; this one takes them over. Their EnvSpec is `vec.spec`.
        names: of the agents, by default agent_0, agent_1, …. AgileRL puts agents whose names differ in nothing but the
            number behind the last underscore into a group with one network.

    Attributes:
        layout: field → (slice, shape) of an observation.
    """

    def __init__(self, vec: VectorEnv, names: Sequence[str] | None = None) -> None:
        layout, box = flat_observation(vec.spec)
        agents = [f"agent_{i}" for i in range(vec.num_agents)] if names is None else list(names)
        if len(set(agents)) != vec.num_agents:
            raise ConfigurationError(f"these games have {vec.num_agents} agents, got the names {', '.join(agents)}")
        actions = spaces.Discrete(vec.spec.num_actions)
        super().__init__(vec.num_envs, dict.fromkeys(agents, box), dict.fromkeys(agents, actions), agents)
        self.vec, self.layout = vec, layout

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        return self._show(*self.vec.reset(seed))

    def step(self, actions: Mapping[str, Any], *args: Any, **kwargs: Any) -> tuple[ByAgent, ...]:
        """Play actions [B] of each agent: observations, rewards, terminations, truncations [B], infos, by agent."""
        played = np.stack([np.asarray(actions[agent]).reshape(-1) for agent in self.agents], 1)
        observation, rewards, _, truncated, info = self.vec.step(played)
        over = np.broadcast_to(info.done[:, None], truncated.shape)
        observations, infos = self._show(observation, info)
        flags = (self._by_agent(array) for array in (rewards, over & ~truncated, over & truncated))
        return observations, *flags, infos

    def close_extras(self, *, timeout: float | None = None, terminate: bool = False, **kwargs: Any) -> None:
        self.vec.close()

    def _show(self, observation: Observation, info: Info) -> tuple[ByAgent, ByAgent]:
        seen, mask = flat_batch(self.vec.spec, self.layout, observation, info.alive)
        masks, won = self._by_agent(mask.astype(np.int8)), (info.done & info.won).astype(np.float32)
        return self._by_agent(seen), {agent: {MASK: masks[agent], "won": won} for agent in self.agents}

    def _by_agent(self, array: np.ndarray) -> ByAgent:
        return {agent: array[:, i].copy() for i, agent in enumerate(self.agents)}
