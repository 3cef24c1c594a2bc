"""OneAgentEnv: base of PettingZoo ParallelEnvs of one agent: spaces, seeds, checks of actions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from magrounding.envs.game_env import GameEnv, Shown, Stepped
from magrounding.spec import WON
from magrounding.text_view import Happened
from magrounding.texts import content_keys
from magrounding.vector import Observation, row_seeds

AGENT = "agent_0"


class OneAgentEnv(GameEnv):
    """One game for agent_0; a subclass begins it (`_begin`), plays it (`_play`) and shows it (`_observe`, `_info`).

    Every array it returns is the caller's own. `infos["agent_0"]` has `action_mask` [A] int8, `document` (equal keys
    mean equal goals), what the subclass gives (`_info`), `illegal` (True) after a masked action, which did nothing, and
    `won` in the last step. A copy, or a pickle, plays the episode again: a simulator does not travel.

    Args:
        config: the options.
        render_mode: None or one of `render_modes`; ConfigurationError for another.

    Attributes:
        played: the actions of the episode, that which is being played included.
    """

    render_modes: tuple[str, ...] = ("ansi", "ansi_full", "rgb_array")
    _kept: tuple[str, ...] = ()
    """Attributes that a copy has beside the episode that it plays again."""

    def __init__(self, config: Any, render_mode: str | None = None) -> None:
        super().__init__(self.id, config.as_dict(), config.describe(), render_mode, self.render_modes)
        self.config = config
        self.played: list[int] = []
        self._seed: int | None = None
        self._episode = 0
        self._over = self._won = self._illegal = False
        self._document = 0
        self._reward = 0.0

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Shown:
        """Start an episode: the first of a seed or, without one, the next after the last (at first, of a random seed).

        Raises:
            ConfigurationError: a seed that is no integer in [0, 2**62).
            CallOrderError: after `close`.
        """
        self._require_open()
        if seed is not None or self._seed is None:
            self._seed, self._episode = int(row_seeds(seed, 1)[0]), 0
        else:
            self._episode += 1
        self.agents = []
        self._play_again(())
        self.agents = [AGENT]
        return self._show_step()

    def _advance(self, chosen: list[int]) -> Stepped:
        acting, action = self.agents, chosen[0]
        self.played.append(action)
        self.agents = []  # of no game, if the simulator is lost now
        reward, terminated, truncated = self._play(action)
        self._reward, self._over = reward, terminated or truncated
        if not self._over:
            self.agents = acting
        observations, infos = self._show_step()
        return observations, {AGENT: reward}, {AGENT: terminated}, {AGENT: truncated}, infos

    def render(self) -> str | np.ndarray | None:
        """Return the game as text or as a picture [height, width, 3] uint8; None without a render mode.

        "ansi" is what the agent sees, in words (`describe`), "ansi_full" what people who develop it want to see. A
        CallOrderError before `reset` and after `close`.
        """
        if self.render_mode is None:
            return None
        self._require_start("render")
        return self.describe(AGENT) if self.render_mode == "ansi" else self._draw(self.render_mode)

    def _seen(self, agent: str) -> Observation:
        return self._observe()

    def _happened(self, agent: str) -> Happened:
        if not self.played:
            return Happened()
        won = self._won if self._over and self.spec.outcome == WON else None
        return Happened(self.played[-1], self._illegal, self._reward, self._over, won)

    def close(self) -> None:
        """Release what the simulator holds."""
        self._closed, self.agents = True, []

    def __getstate__(self) -> dict[str, Any]:
        """Return what is needed to play the episode again."""
        kept = ("config", "render_mode", "agents", "played", "_seed", "_episode", "_closed", *self._kept)
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a copy: what was played is played again."""
        self.__init__(state["config"], state["render_mode"])
        if state["_closed"]:
            self.close()
        vars(self).update({**state, "agents": list(state["agents"])})
        if self._seed is not None and not self._closed:
            self._play_again(self.played)
        vars(self).update({name: state[name] for name in self._kept})

    def _begin_text(self, name: str, row: np.ndarray) -> None:
        """Take the ids of the text that the episode is about; equal texts are one document."""
        self._document = int(content_keys({name: row[None]})[0])

    def _play_again(self, actions: Sequence[int]) -> None:
        """Bring the game to where these actions have brought the episode."""
        assert self._seed is not None
        self._over = self._won = self._illegal = False
        self.played = []
        self._begin(self._seed, self._episode)
        self._begun = True
        for action in actions:
            self.played.append(action)
            self._reward, terminated, truncated = self._play(action)
            self._over = terminated or truncated

    def _show_step(self) -> Shown:
        observation = self._observe()
        info = {"action_mask": observation["action_mask"].copy(), "document": self._document, **self._info()}
        if self._illegal:
            info["illegal"] = True
        if self._over:
            info["won"] = self._won
        return {AGENT: observation}, {AGENT: info}

    @abstractmethod
    def _begin(self, seed: int, episode: int) -> None:
        """Start the game of an episode."""

    @abstractmethod
    def _play(self, action: int) -> tuple[float, bool, bool]:
        """Play an action, set `_won` and `_illegal`; return reward, terminated, truncated."""

    @abstractmethod
    def _draw(self, mode: str) -> str | np.ndarray:
        """Return the whole game as text ("ansi_full") or as a picture."""

    @abstractmethod
    def _observe(self) -> Observation:
        """Return new arrays, in the order of the space."""

    @abstractmethod
    def _info(self) -> dict[str, Any]:
        """Return `text` and what else a game reports, in a new dict."""
