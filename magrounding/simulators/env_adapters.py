"""One interface for PettingZoo parallel envs and Gymnasium envs: the former's."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import spaces

from magrounding.errors import ConfigurationError
from magrounding.simulators.answers import flag, parts_of, refuse

_AGENT = "agent_0"
_RESET_ONE, _RESET = ("observation", "info"), ("observations", "infos")
_STEP_ONE = ("observation", "reward", "terminated", "truncated", "info")
_STEP = ("observations", "rewards", "terminations", "truncations", "infos")

ByAgent = Mapping[Any, Any]


class PettingZooAdapter:
    """A PettingZoo parallel env as it is, if it answers as one.

    A ConfigurationError for an env whose agents are no list of different names, and for wrong results of `reset` and
    `step`.
    """

    def __init__(self, env: Any) -> None:
        self.env = env
        try:
            self.possible_agents = list(env.possible_agents)
            self._known = set(self.possible_agents)
        except TypeError:
            self.possible_agents, self._known = [], set[Any]()
        if not self._known or len(self._known) < len(self.possible_agents):
            refuse("possible_agents", env.possible_agents, env, "a list of different names, one at least,")
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    @property
    def agents(self) -> list[Any]:
        acting = getattr(self.env, "agents", None)
        try:
            found = list(acting)  # pyright: ignore[reportArgumentType]  None is refused
            known = self._known.issuperset(found)
        except TypeError:  # nothing to go through, or names that nothing is found by
            found, known = [], False
        if not known:
            refuse("agents", acting, self.env, f"a list of some of {reprlib.repr(self.possible_agents)}")
        return found

    def reset(self, seed: int) -> tuple[ByAgent, ByAgent]:
        observations, infos = parts_of(self.env.reset(seed=seed), _RESET, "reset", self.env)
        self._check("observations of reset()", observations)
        self._check_infos("infos of reset()", infos)
        return observations, infos

    def step(self, actions: dict[Any, int]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        result = parts_of(self.env.step(actions), _STEP, "step", self.env)
        observations, rewards, terminations, truncations, infos = result
        self._check("observations of step()", observations)
        for what, found in zip(_STEP[1:4], result[1:4], strict=True):
            if type(found) is dict and found.keys() == actions.keys():
                continue
            self._check(what, found)
            if not actions.keys() <= found.keys():
                refuse(what, found, self.env, f"one for each agent that has acted, {reprlib.repr(list(actions))},")
        self._check_infos("infos of step()", infos)
        return observations, rewards, terminations, truncations, infos

    def _check(self, what: str, found: Any) -> None:
        if not isinstance(found, Mapping) or not found.keys() <= self._known:
            refuse(what, found, self.env, f"a dict by agent, of {reprlib.repr(self.possible_agents)},")

    def _check_infos(self, what: str, infos: Any) -> None:
        if not isinstance(infos, Mapping):
            refuse(what, infos, self.env, "a dict by agent")
        for info in infos.values():  # those that are of no agent may be there
            _check_info(info, self.env)


class GymnasiumAdapter:
    """A Gymnasium env as a parallel one for agent_0; ConfigurationError for wrong results of `reset` and `step`."""

    def __init__(self, env: gymnasium.Env) -> None:
        self.env = env
        self.possible_agents = [_AGENT]
        self.agents: list[str] = []

    def observation_space(self, agent: str) -> spaces.Space:
        return self.env.observation_space

    def action_space(self, agent: str) -> spaces.Space:
        return self.env.action_space

    def reset(self, seed: int) -> tuple[ByAgent, ByAgent]:
        observation, info = parts_of(self.env.reset(seed=seed), _RESET_ONE, "reset", self.env)
        self.agents = [_AGENT]
        _check_info(info, self.env)
        return {_AGENT: observation}, {_AGENT: info}

    def step(self, actions: dict[Any, int]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        result = parts_of(self.env.step(actions[_AGENT]), _STEP_ONE, "step", self.env)
        observation, reward, terminated, truncated, info = result
        terminated, truncated = flag(terminated, "terminated", self.env), flag(truncated, "truncated", self.env)
        if terminated or truncated:
            self.agents = []
        _check_info(info, self.env)
        return {_AGENT: observation}, {_AGENT: reward}, {_AGENT: terminated}, {_AGENT: truncated}, {_AGENT: info}


def _check_info(info: Any, env: Any) -> None:
    if type(info) is not dict and not isinstance(info, Mapping):
        refuse("info", info, env, "a dict")


EnvAdapter = PettingZooAdapter | GymnasiumAdapter


def adapt(env: Any) -> EnvAdapter:
    """Return an env behind its adapter; ConfigurationError for neither PettingZoo's parallel nor Gymnasium's."""
    if isinstance(env, gymnasium.Env):
        return GymnasiumAdapter(env)
    needed = ("possible_agents", "reset", "step", "observation_space")
    if hasattr(env, "agent_iter") or not all(hasattr(env, name) for name in needed):
        raise ConfigurationError(
            f"make_env made a {type(env).__name__}; a PettingZoo ParallelEnv or a gymnasium.Env was expected "
            "(pettingzoo.utils.aec_to_parallel makes one of an env whose agents act in turn)"
        )
    return PettingZooAdapter(env)


def attribute(env: Any, name: str) -> Any:
    """Return an attribute of an env or, as Gymnasium's wrappers hide unknown ones, of the one within, or None."""
    found = getattr(env, name, None)
    return getattr(getattr(env, "unwrapped", env), name, None) if found is None else found
