"""SingleAgentEnv: a ParallelEnv of one agent as a Gymnasium env."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from pettingzoo import ParallelEnv

from magrounding.envs.game_env import FRAMES_PER_SECOND
from magrounding.envs.make import make
from magrounding.envs.parallel import RENDER_MODES
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.simulators.writer import converted
from magrounding.spec import EnvSpec
from magrounding.vector import DeepCopied, Observation
from magrounding.vocabulary import Vocabulary


class SingleAgentEnv(DeepCopied, gymnasium.Env[Observation, np.int64]):
    """A ParallelEnv of one agent as a Gymnasium env; ConfigurationError for one of several agents."""

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": FRAMES_PER_SECOND}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(self, env: ParallelEnv) -> None:
        if env.max_num_agents != 1:
            raise ConfigurationError(
                f"a Gymnasium env has one agent, this game has {env.max_num_agents}; use magrounding.make, "
                "or ask for one agent where the game has the option `agents`"
            )
        self.env = env
        self.agent = env.possible_agents[0]
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = {"render_fps": FRAMES_PER_SECOND, **env.metadata}
        self.observation_space = env.observation_space(self.agent)
        self.action_space = env.action_space(self.agent)
        self._mask: np.ndarray | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """Words of the ids in observations; ConfigurationError for an env that names none."""
        spec = getattr(self.env, "spec", None)
        if not isinstance(spec, EnvSpec):
            raise ConfigurationError(f"{type(self.env).__name__} names no words: its `spec` is no magrounding EnvSpec")
        return spec.vocabulary

    def action_masks(self) -> np.ndarray:
        """Return [A] bool, actions that do something now; all of them without a mask. MaskablePPO calls this."""
        if self._mask is None:
            raise CallOrderError("call reset() before action_masks()")
        return self._mask.copy()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        observations, infos = self.env.reset(seed, options)
        # Gymnasium wants its own generator seeded; the env, which has checked the seed, does not use it.
        super().reset(seed=None if seed is None else int(seed))
        self._remember_mask(infos[self.agent])
        return observations[self.agent], infos[self.agent]

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        observations, rewards, terminations, truncations, infos = self.env.step({self.agent: action})
        agent = self.agent
        self._remember_mask(infos[agent])
        return observations[agent], rewards[agent], terminations[agent], truncations[agent], infos[agent]

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    def _remember_mask(self, info: dict[str, Any]) -> None:
        every = np.ones(self.action_space.n, np.bool_)  # pyright: ignore[reportAttributeAccessIssue]  Discrete
        self._mask = converted(info.get("action_mask", every), every, "'action_mask'", self.env)


def make_single_agent(env: str, render_mode: str | None = None, **options: Any) -> SingleAgentEnv:
    """Make an environment of one agent as a Gymnasium env: for `gymnasium.make("magrounding/<env>-v0", …)`."""
    return SingleAgentEnv(make(env, render_mode=render_mode, **options))
