"""One interface for PettingZoo parallel envs and Gymnasium envs: the former's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import spaces

from magrounding.errors import ConfigurationError
from magrounding.simulators.answers import flag, name_of, parts_of, short_repr

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
            raise self._wrong("possible_agents", env.possible_agents, "a list of names") from None
        if len(self._known) < len(self.possible_agents):
            raise self._wrong("possible_agents", self.possible_agents, "a list of different names")
        self.observation_space = env.observation_space
        self.action_space = env.action_space

    @property
    def agents(self) -> list[Any]:
        acting = getattr(self.env, "agents", None)
        try:
            found = list(acting)  # pyright: ignore[reportArgumentType]  None is refused
            if self._known.issuperset(found):
                return found
        except TypeError:  # nothing to go through, or names that nothing is found by
            pass
        raise self._wrong("agents", acting, f"a list of some of {short_repr(self.possible_agents)}")

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
                lacking = next(agent for agent in actions if agent not in found)
                raise self._wrong(what, found, f"one for each agent that has acted, {short_repr(lacking)} too")
        self._check_infos("infos of step()", infos)
        return observations, rewards, terminations, truncations, infos

    def _check(self, what: str, found: Any) -> None:
        if not isinstance(found, Mapping):
            raise self._wrong(what, found, "a dict by agent")
        if not found.keys() <= self._known:
            stranger = next(agent for agent in found if agent not in self._known)
            raise self._wrong(what, found, f"no {short_repr(stranger)}, who is none of its possible_agents,")

    def _check_infos(self, what: str, infos: Any) -> None:
        if not isinstance(infos, Mapping):
            raise self._wrong(what, infos, "a dict by agent")
        for info in infos.values():  # those that are of no agent may be there
            if type(info) is not dict and not isinstance(info, Mapping):
                raise self._wrong(what, infos, "a dict of dicts")

    def _wrong(self, what: str, got: Any, expected: str) -> ConfigurationError:
        return ConfigurationError(f"{what} of {name_of(self.env)} are {short_repr(got)}: {expected} was expected")


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
        return {_AGENT: observation}, {_AGENT: self._checked(info)}

    def step(self, actions: dict[Any, int]) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        result = parts_of(self.env.step(actions[_AGENT]), _STEP_ONE, "step", self.env)
        observation, reward, terminated, truncated, info = result
        terminated, truncated = flag(terminated, "terminated", self.env), flag(truncated, "truncated", self.env)
        if terminated or truncated:
            self.agents = []
        info = self._checked(info)
        return {_AGENT: observation}, {_AGENT: reward}, {_AGENT: terminated}, {_AGENT: truncated}, {_AGENT: info}

    def _checked(self, info: Any) -> Mapping[str, Any]:
        if type(info) is not dict and not isinstance(info, Mapping):
            raise ConfigurationError(f"info of {name_of(self.env)} is {short_repr(info)}: a dict was expected")
        return info


EnvAdapter = PettingZooAdapter | GymnasiumAdapter


def adapt(env: Any) -> EnvAdapter:
    """Return an env behind its adapter; ConfigurationError for neither PettingZoo's parallel nor Gymnasium's."""
    if isinstance(env, gymnasium.Env):
        return GymnasiumAdapter(env)
    if hasattr(env, "agent_iter"):
        raise ConfigurationError(
            f"{type(env).__name__} lets agents act in turn; make it parallel first: pettingzoo.utils.aec_to_parallel"
        )
    if not all(hasattr(env, name) for name in ("possible_agents", "reset", "step", "observation_space")):
        raise ConfigurationError(
            f"make_env made a {type(env).__name__}; a PettingZoo ParallelEnv or a gymnasium.Env was expected"
        )
    return PettingZooAdapter(env)


def attribute(env: Any, name: str) -> Any:
    """Return an attribute of an env or, as Gymnasium's wrappers hide unknown ones, of the one within, or None."""
    found = getattr(env, name, None)
    return getattr(getattr(env, "unwrapped", env), name, None) if found is None else found
