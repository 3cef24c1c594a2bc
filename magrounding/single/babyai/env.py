"""BabyAIEnv: BabyAI as a PettingZoo ParallelEnv of one agent."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from magrounding.envs.render import Scene
from magrounding.single.babyai import picture
from magrounding.single.babyai.expert import Expert
from magrounding.single.babyai.levels import game_seed, make_game
from magrounding.single.babyai.options import ACTIONS, BabyAI
from magrounding.single.babyai.view import View
from magrounding.single.babyai.words import MAX_WORDS, VOCABULARY, grid_words, mission_ids
from magrounding.single.one_agent import OneAgentEnv
from magrounding.texts import content_keys
from magrounding.vector import Observation

RENDER_MODES = ("ansi", "ansi_full", "rgb_array")
FRAMES_PER_SECOND = 10
_CHANGES_A_CELL = frozenset(ACTIONS.index(name) for name in ("pickup", "drop", "toggle"))


class BabyAIEnv(OneAgentEnv):
    """One game of BabyAI for agent_0; arguments, errors and infos as of `OneAgentEnv`.

    `infos["agent_0"]` has `text` (`goal`, the mission as minigrid words it; `manual`, an empty list), too, and
    `expert_failed` (True) once the bot has given up in this episode.

    Attributes:
        expert_failures: episodes in which the bot was asked and has failed.
        game: minigrid's game; look at it, do not change it.
        game_seed: the seed that it was last reset with.
    """

    id = "babyai"

    def __init__(self, config: BabyAI, render_mode: str | None = None) -> None:
        super().__init__(config, VOCABULARY, render_mode, RENDER_MODES, FRAMES_PER_SECOND)
        self.expert_failures = 0
        self.game = make_game(config.level, config.max_cycles)
        self.game_seed = -1
        self._view = View(self.game) if config.fast_view else None
        self._mask = np.ones(self._num_actions, np.int8)
        self._goal = np.zeros(MAX_WORDS, np.int16)
        self._start = np.zeros(2, np.int16)
        self._expert: Expert | None = None

    def best_actions(self) -> np.ndarray:
        """Labels [1, 7] bool: what the bot would play now; every action where it has failed or the episode is over.

        Raises:
            CallOrderError: before `reset`, or after `close`.
        """
        self._require_start("best_actions")
        if not self.agents:
            return np.ones((1, len(ACTIONS)), np.bool_)
        if self._expert is None:
            self._expert = Expert(self.game, self._view)
            self.expert_failures += self._expert.failed
        return self._expert.labels()

    def scene(self) -> Scene:
        """Return a picture of what the agent sees: people who play see no more of the map than an agent."""
        self._require_start("scene")
        outcome = ("won" if self._won else "lost") if self._over else ""
        return picture.scene(self.game, self._grid, outcome)

    def _draw(self, mode: str) -> str | np.ndarray:
        return picture.ansi(self.game) if mode == "ansi_full" else self.game.get_frame()

    def close(self) -> None:
        """Release what minigrid holds."""
        super().close()
        self.game.close()

    def __getstate__(self) -> dict[str, Any]:
        """All there is: minigrid's game travels as it stands, and with it the bot and its plan."""
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _begin(self, seed: int, episode: int) -> None:
        self.game_seed = game_seed(seed, episode, self.config.split)
        with contextlib.redirect_stdout(io.StringIO()):  # the generator prints what it rejects
            seen, _ = self.game.reset(seed=self.game_seed)
        if self._view is not None:
            self._view.reset()
        self._goal = mission_ids(self.game.mission)
        self._start = self._at()
        self._document = int(content_keys({"goal": self._goal[None]})[0])
        self._expert = None
        self._look(seen)

    def _play(self, action: int) -> tuple[float, bool, bool]:
        seen, reward, terminated, truncated, _ = self.game.step(action)
        reward, terminated = float(reward), bool(terminated)
        truncated = bool(truncated) and not terminated
        self._won = terminated and reward > 0
        if self._view is not None and action in _CHANGES_A_CELL:
            self._view.update()
        self._look(seen)  # before the bot goes on: it shares the view
        if self._expert is not None and not self._expert.failed and not (terminated or truncated):
            self._expert.follow(action)
            self.expert_failures += self._expert.failed
        return reward, terminated, truncated

    def _at(self) -> np.ndarray:
        """Row and column of the agent, [2] int16."""
        return np.array(self.game.agent_pos[::-1], np.int16)

    def _look(self, seen: dict[str, Any] | None) -> None:
        """Compute the view; `seen` is minigrid's observation, where it computes one."""
        if self._view is not None:
            self._grid = self._view.grid()
        else:
            self._grid = grid_words(seen["image"])  # pyright: ignore[reportOptionalSubscript]  None with our view only

    def _observe(self) -> Observation:
        come = {"displacement": self._at() - self._start} if self.config.displacement else {}
        return {
            "action_mask": self._mask.copy(),
            "direction": np.array([self.game.agent_dir], np.int16),
            **come,
            "goal": self._goal.copy(),
            "grid": self._grid.copy(),
        }

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"text": {"manual": [], "goal": self.game.mission}}
        if self._expert is not None and self._expert.failed:
            info["expert_failed"] = True
        return info
