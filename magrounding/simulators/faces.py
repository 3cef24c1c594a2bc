"""One face for PettingZoo parallel envs and Gymnasium envs: the former's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import gymnasium
from gymnasium import spaces

from magrounding.errors import ConfigurationError

_AGENT = "agent_0"

ByAgent = Mapping[Any, Any]


class ParallelFace(Protocol):
    """What a game asks of an env.

    Attributes:
        env: the env behind it.
        possible_agents: all agents, in the order of the columns of a batch.
        agents: those who act next.
    """

    env: Any
    possible_agents: list[Any]

    @property
    def agents(self) -> list[Any]: ...

    def observation_space(self, agent: Any) -> spaces.Space:
        """What an agent sees."""
        ...

    def action_space(self, agent: Any) -> spaces.Space:
        """What an agent can do."""
        ...

    def reset(self, seed: int) -> tuple[ByAgent, ByAgent]:
        """Start an episode: observations, infos."""
        ...

    def step(self, actions: dict[Any, int]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Play a step: observations, rewards, terminations, truncations, infos."""
        ...


class PettingZooFace:
    """A PettingZoo parallel env as it is."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.possible_agents = list(env.possible_agents)
        self.observation_space = env.observation_space
        self.action_space = env.action_space
        self.step = env.step

    @property
    def agents(self) -> list[Any]:
        return self.env.agents

    def reset(self, seed: int) -> tuple[ByAgent, ByAgent]:
        return self.env.reset(seed=seed)


class GymnasiumFace:
    """A Gymnasium env as a game for agent_0."""

    def __init__(self, env: gymnasium.Env) -> None:
        self.env = env
        self.possible_agents = [_AGENT]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space:
        return self.env.observation_space

    def action_space(self, agent: str) -> spaces.Space:
        return self.env.action_space

    def reset(self, seed: int) -> tuple[ByAgent, ByAgent]:
        observation, info = self.env.reset(seed=seed)
        self.agents = [_AGENT]
        return {_AGENT: observation}, {_AGENT: info}

    def step(self, actions: dict[Any, int]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        observation, reward, terminated, truncated, info = self.env.step(actions[_AGENT])
        if terminated or truncated:
            self.agents = []
        return {_AGENT: observation}, {_AGENT: reward}, {_AGENT: terminated}, {_AGENT: truncated}, {_AGENT: info}


def face_of(env: Any) -> ParallelFace:
    """An env behind its face; ConfigurationError for what is neither PettingZoo's parallel nor Gymnasium's."""
    if isinstance(env, gymnasium.Env):
        return GymnasiumFace(env)
    if hasattr(env, "agent_iter"):
        raise ConfigurationError(
            f"{type(env).__name__} lets agents act in turn; make it parallel first: pettingzoo.utils.aec_to_parallel"
        )
    if not all(hasattr(env, name) for name in ("possible_agents", "reset", "step", "observation_space")):
        raise ConfigurationError(
            f"make_env made a {type(env).__name__}; a PettingZoo ParallelEnv or a gymnasium.Env was expected"
        )
    return PettingZooFace(env)


def attribute(env: Any, name: str, default: Any = None) -> Any:
    """An attribute of an env or, as Gymnasium's wrappers hide those they do not know, of the env within them."""
    found = getattr(env, name, None)
    return getattr(getattr(env, "unwrapped", env), name, default) if found is None else found
