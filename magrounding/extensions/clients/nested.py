"""`nested`: observations as PettingZoo's envs with illegal moves show them, which tianshou and RLlib expect."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

from magrounding.errors import ConfigurationError
from magrounding.spec import MASK


class NestedEnv(BaseParallelWrapper):
    """A parallel env with nested observations, see `nested`."""

    def __init__(self, env: ParallelEnv, key: str) -> None:
        super().__init__(env)
        self.key = key
        self._spaces = {agent: self._nest_space(env, agent) for agent in env.possible_agents}

    def observation_space(self, agent: Any) -> spaces.Dict:
        self.env.observation_space(agent)  # says which agents there are
        return self._spaces[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> tuple[dict, dict]:
        observations, infos = self.env.reset(seed, options)
        return self._nest(observations), infos

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        observations, *rest = self.env.step(actions)
        return self._nest(observations), *rest  # pyright: ignore[reportReturnType]  five, as the env returns them

    def _nest(self, observations: dict) -> dict:
        return {agent: self._split(seen) for agent, seen in observations.items()}

    def _split(self, seen: dict) -> dict:
        return {self.key: {name: part for name, part in seen.items() if name != MASK}, MASK: seen[MASK]}

    def _nest_space(self, env: ParallelEnv, agent: Any) -> spaces.Dict:
        space = env.observation_space(agent)
        if not isinstance(space, spaces.Dict) or MASK not in space.spaces:
            raise ConfigurationError(
                f"nested() takes an env whose observations are dicts with {MASK!r}, {agent} sees {space}; "
                "give it the env as mg.make returns it"
            )
        return spaces.Dict({self.key: spaces.Dict(self._split(space.spaces)[self.key]), MASK: space[MASK]})


def nested(env: ParallelEnv, key: str = "observation") -> NestedEnv:
    """Wrap an env so that observations are `{"observation": {…}, "action_mask": …}` instead of one flat dict.

    tianshou's `PettingZooEnv(pettingzoo.utils.parallel_to_aec(nested(env)))` and RLlib's `ParallelPettingZooEnv` look
    for the mask there; RLlib's action-masking module asks for the key "observations". Everything but observations and
    their spaces is as it was. A ConfigurationError for an env that is not parallel, or observations without a mask.
    """
    if not isinstance(env, ParallelEnv):
        raise ConfigurationError(f"nested() takes a PettingZoo ParallelEnv, got {type(env).__name__}: use mg.make")
    return NestedEnv(env, key)
