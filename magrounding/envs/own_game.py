"""OwnGame: base of games of one's own, of one agent or several, in one file (docs/your_game.md)."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from magrounding.envs.game_env import ParallelGame, Shown, Stepped
from magrounding.errors import ConfigurationError
from magrounding.spec import MASK, SCORE, EnvSpec, Field
from magrounding.texts import content_keys
from magrounding.vector import row_seeds


class OwnGame(ParallelGame):
    """One game, which all agents play to its end: a subclass starts it, plays a step, and shows it.

    Arguments of the subclass that have defaults are the options of the environment. The limit `spec.max_cycles` ends
    games by itself. Infos have what agents see in words (`text`), the key of what they all read (`document`), the mask,
    `illegal` after a masked action, and `won` at the end.

    Args:
        spec: of the game.

    Attributes:
        score: of the game so far, to be set by `play` where `spec.outcome` is SCORE.
    """

    score: float = 0.0

    def __init__(self, spec: EnvSpec) -> None:
        super().__init__(spec)
        self.metadata = {"name": type(self).__name__.lower(), "render_modes": []}
        self._ids = {word: i for i, word in enumerate(spec.words)}
        self._steps, self._masks = 0, np.ones((spec.num_agents, spec.num_actions), np.int8)

    @abstractmethod
    def start(self, rng: Generator) -> None:
        """Begin a game; whatever is random in it comes from `rng`, in `play` too."""

    @abstractmethod
    def play(self, actions: Sequence[int]) -> tuple[Sequence[float], bool, bool]:
        """Play the action of each agent; return the reward of each, whether the game is over, and whether it is won."""

    @abstractmethod
    def look(self, agent: int) -> Mapping[str, Any]:
        """Return what an agent sees, by field: a text as a string, or a list of them for its rows; numbers or arrays.

        Without `action_mask` every action counts.
        """

    def describe(self) -> EnvSpec:
        """Return the spec; nothing is started for it."""
        return self.spec

    def make_env(self, render_mode: str | None = None) -> Self:
        """Return a game with these options."""
        return copy.deepcopy(self)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Shown:
        """Start a game: that of a seed or, without one, the next.

        ConfigurationError for a wrong seed or what `look` may not show, CallOrderError after `close`.
        """
        self._require_open()
        if seed is not None or not self._begun:
            self._rng = np.random.default_rng(int(row_seeds(seed, 1)[0]))
        self._begun, self._steps, self.agents = True, 0, self.possible_agents[:]
        self.start(self._rng)
        return self._show([{} for _ in self.agents])

    def _advance(self, chosen: list[int]) -> Stepped:
        acting = self.agents
        infos: list[dict[str, Any]] = [
            {} if mask[action] else {"illegal": True} for mask, action in zip(self._masks, chosen, strict=True)
        ]
        answer = self.play(chosen)
        if not isinstance(answer, tuple) or len(answer) != 3 or np.shape(answer[0]) != (len(acting),):
            raise ConfigurationError(f"play returns (rewards of {len(acting)} agents, over, won), got {answer!r}")
        rewards, over, won = answer
        self._steps += 1
        late = not over and self._steps >= self.spec.max_cycles
        if over or late:
            self.agents = []
            for info in infos:
                info["won"] = bool(won)
        observations, told = self._show(infos)
        by_agent = {agent: float(reward) for agent, reward in zip(acting, rewards, strict=True)}
        return observations, by_agent, dict.fromkeys(acting, bool(over)), dict.fromkeys(acting, late), told

    def close(self) -> None:
        """Refuse all that follows."""
        self.agents, self._closed = [], True

    def _show(self, infos: list[dict[str, Any]]) -> Shown:
        """Observations and infos of all agents; what is the same for each game is added to the infos."""
        observations = {}
        for i, (agent, info) in enumerate(zip(self.possible_agents, infos, strict=True)):
            shown = {MASK: 1, **self.look(i)}
            seen = {field.name: self._array(field, shown.get(field.name)) for field in self.spec.fields}
            if MASK in seen:
                self._masks[i] = info[MASK] = seen[MASK]
                info[MASK] = info[MASK].copy()
            info["text"] = {text.name: copy.copy(shown[text.name]) for text in self.spec.texts}
            if read := {name: seen[name][None] for name in self.spec.shared_texts}:
                info["document"] = int(content_keys(read)[0])
            if self.spec.outcome == SCORE:
                info["score"] = float(self.score)
            observations[agent] = seen
        return observations, dict(zip(self.possible_agents, infos, strict=True))

    def _array(self, field: Field, shown: Any) -> np.ndarray:
        """A field's array of what `look` shows."""
        array = np.zeros(field.shape, field.dtype)
        lines = [shown] if isinstance(shown, str) else shown
        if not isinstance(lines, Sequence) or not all(isinstance(line, str) for line in lines):
            with suppress(TypeError, ValueError, OverflowError):
                array[...] = shown
                if array.dtype.kind == "f" or (array == shown).all():
                    return array
            raise ConfigurationError(f"{field.name} has shape {field.shape} and dtype {field.dtype}, got {shown!r}")
        for row, line in zip(array.reshape(-1, field.shape[-1]), lines, strict=False):
            ids = [self._ids.get(word, -1) for word in line.split()]
            if min(ids, default=0) < 0 or len(ids) > len(row):
                raise ConfigurationError(
                    f"{field.name} is of at most {len(row)} words of the game's spec, got {line!r}"
                )
            row[: len(ids)] = ids
        return array
