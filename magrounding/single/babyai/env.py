"""BabyAIEnv: BabyAI as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from operator import index
from typing import Any, SupportsIndex

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from magrounding.envs.render import Scene
from magrounding.errors import ConfigurationError, InvalidAction, choose
from magrounding.single.babyai import picture
from magrounding.single.babyai.expert import Expert
from magrounding.single.babyai.levels import game_seed, make_game
from magrounding.single.babyai.options import ACTIONS, BabyAI
from magrounding.single.babyai.view import View
from magrounding.single.babyai.words import MAX_WORDS, VOCABULARY, grid_words, mission_ids
from magrounding.texts import content_keys
from magrounding.vector import row_seeds

RENDER_MODES = ("ansi", "rgb_array")
FRAMES_PER_SECOND = 10
_AGENT = "agent_0"
_CHANGES_A_CELL = frozenset(ACTIONS.index(name) for name in ("pickup", "drop", "toggle"))

Observation = dict[str, np.ndarray]


class BabyAIEnv(ParallelEnv[str, Observation, SupportsIndex]):
    """One game of BabyAI for agent_0.

    Every array it returns is the caller's own. `infos["agent_0"]` has `action_mask` [7] int8, `text` (`goal`, the
    mission as minigrid words it; `manual`, an empty list), `document` (equal keys mean equal missions); `won` in the
    last step; and `expert_failed` (True) once the bot has given up in this episode.

    Args:
        config: which level, limit, view and split.
        render_mode: None, "ansi" or "rgb_array".

    Attributes:
        expert_failures: episodes in which the bot was asked and has failed.
        game: minigrid's game; look at it, do not change it.
        game_seed: the seed that it was last reset with.

    Raises:
        ConfigurationError: an unknown render mode.
    """

    id = "babyai"

    def __init__(self, config: BabyAI, render_mode: str | None = None) -> None:
        if render_mode is not None:
            choose("render_mode", render_mode, RENDER_MODES)
        self.config = config
        self.options = config.as_dict()
        self.render_mode = render_mode
        self.spec = config.describe()
        self.vocabulary = VOCABULARY
        self.metadata = {
            "name": f"{self.id}-v0",
            "render_modes": list(RENDER_MODES),
            "is_parallelizable": True,
            "render_fps": FRAMES_PER_SECOND,
        }
        self.possible_agents = [_AGENT]
        self.agents: list[str] = []
        self.expert_failures = 0
        self.game = make_game(config.level, config.max_cycles)
        self.game_seed = -1
        self._view = View(self.game) if config.fast_view else None
        self._observation_space = self.spec.space()
        self._action_space = spaces.Discrete(self.spec.num_actions)
        self._mask = np.ones(self.spec.num_actions, np.int8)
        self._goal = np.zeros(MAX_WORDS, np.int16)
        self._document = 0
        self._expert: Expert | None = None
        self._seed: int | None = None
        self._episode = 0
        self._outcome = ""

    def observation_space(self, agent: str) -> spaces.Dict:
        """The space of what the agent sees; the same object on each call."""
        choose("agent", agent, self.possible_agents)
        return self._observation_space

    def action_space(self, agent: str) -> spaces.Discrete:
        """The space of the agent's actions; the same object on each call."""
        choose("agent", agent, self.possible_agents)
        return self._action_space

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start an episode: the first of a seed or, without one, the next after the last (at first, of a random seed).

        Args:
            seed: an integer in [0, 2**62).
            options: ignored; PettingZoo's interface has it.

        Returns:
            observations, infos: by agent.
        """
        if seed is not None or self._seed is None:
            self._seed, self._episode = int(row_seeds(seed, 1)[0]), 0
        else:
            self._episode += 1
        self.game_seed = game_seed(self._seed, self._episode, self.config.split)
        with contextlib.redirect_stdout(io.StringIO()):  # the generator prints what it rejects
            seen, _ = self.game.reset(seed=self.game_seed)
        if self._view is not None:
            self._view.reset()
        self._goal = mission_ids(self.game.mission)
        self._document = int(content_keys({"goal": self._goal[None]})[0])
        self._expert, self._outcome = None, ""
        self.agents = [_AGENT]
        return {_AGENT: self._observe(seen)}, {_AGENT: self._info()}

    def step(
        self, actions: Mapping[str, SupportsIndex]
    ) -> tuple[dict[str, Observation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Play one step.

        Args:
            actions: an integer in [0, 7) for "agent_0".

        Returns:
            observations, rewards, terminations, truncations, infos: by agent; five empty dicts where the episode is
            over and no action is given.

        Raises:
            InvalidAction: an action outside the space, a missing or unknown agent, a step before `reset` or after the
                end. Nothing has happened then: the step can be repeated with a better action.
        """
        if not isinstance(actions, Mapping):
            raise InvalidAction(f"actions are a dict with an integer for agent_0, got {type(actions).__name__}")
        if not self.agents and self._seed is not None and not actions:
            return {}, {}, {}, {}, {}
        action = self._action(actions)
        seen, reward, terminated, truncated, _ = self.game.step(action)
        reward, terminated = float(reward), bool(terminated)
        truncated = bool(truncated) and not terminated
        if self._view is not None and action in _CHANGES_A_CELL:
            self._view.update()
        observation = self._observe(seen)
        if terminated or truncated:
            self.agents = []
        elif self._expert is not None and not self._expert.failed:
            self._expert.follow(action)
            self.expert_failures += self._expert.failed
        info = self._info()
        if terminated or truncated:
            info["won"] = terminated and reward > 0
            self._outcome = "won" if info["won"] else "lost"
        return {_AGENT: observation}, {_AGENT: reward}, {_AGENT: terminated}, {_AGENT: truncated}, {_AGENT: info}

    def best_actions(self) -> np.ndarray:
        """Labels [1, 7] bool: what the bot would play now; every action where it has failed or the episode is over.

        Raises:
            ConfigurationError: before `reset`.
        """
        if self._seed is None:
            raise ConfigurationError("call reset() before best_actions()")
        if not self.agents:
            return np.ones((1, len(ACTIONS)), np.bool_)
        if self._expert is None:
            self._expert = Expert(self.game, self._view)
            self.expert_failures += self._expert.failed
        return self._expert.labels()

    def scene(self) -> Scene:
        """The whole game, to be drawn."""
        if self._seed is None:
            raise ConfigurationError("call reset() before scene()")
        return picture.scene(self.game, self._outcome)

    def render(self) -> str | np.ndarray | None:
        """The game as text ("ansi") or minigrid's picture [height, width, 3] uint8; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._seed is None:
            raise ConfigurationError("call reset() before render()")
        return picture.ansi(self.game) if self.render_mode == "ansi" else self.game.get_frame()

    def close(self) -> None:
        """Release what minigrid holds."""
        self.game.close()

    def _action(self, actions: Mapping[str, SupportsIndex]) -> int:
        if not self.agents:
            raise InvalidAction(
                "call reset() before step()" if self._seed is None else "the episode is over: call reset()"
            )
        if actions.keys() != {_AGENT}:
            raise InvalidAction(f"actions are for {list(actions)}, expected one for each of {self.agents}")
        try:
            action = index(actions[_AGENT])
        except TypeError:
            action = -1
        if not 0 <= action < len(ACTIONS):
            raise InvalidAction(f"action {actions[_AGENT]!r} of {_AGENT} is not an integer in [0, {len(ACTIONS)})")
        return action

    def _observe(self, seen: dict[str, Any] | None) -> Observation:
        """The observation, in the order of the space; `seen` is minigrid's, where it computes one."""
        if self._view is not None:
            grid = self._view.grid()
        else:
            grid = grid_words(seen["image"])  # pyright: ignore[reportOptionalSubscript]  None with a view of ours only
        return {
            "action_mask": self._mask.copy(),
            "direction": np.array([self.game.agent_dir], np.int16),
            "goal": self._goal.copy(),
            "grid": grid,
        }

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {
            "action_mask": self._mask.copy(),
            "text": {"manual": [], "goal": self.game.mission},
            "document": self._document,
        }
        if self._expert is not None and self._expert.failed:
            info["expert_failed"] = True
        return info
