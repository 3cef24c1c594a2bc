"""The shuffled-manual control: agents that read must play worse with the rules of another game, in any world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.play.actor import Actor, begin_memory

_ODD = 0x1E37_79B9_7F4A_7C15
_POSITIVE = np.iinfo(np.int64).max


class ShuffledManuals:
    """A team to which game b of a vector env shows the rules of game b + 1 (the last one those of the first).

    Everything else is the game's own. By chance the other text may agree with the game. It changes when the other game
    restarts, even in the middle of an episode.

    Args:
        team: who plays.
        text: the field that states the rules.
    """

    draws = True

    def __init__(self, team: Actor, text: str = "manual") -> None:
        self._team, self._text = team, text
        self.accepts_rows = bool(getattr(team, "accepts_rows", False))

    def initial_memory(self, num_envs: int, seed: int = 0) -> Any:
        """Return the team's own memory."""
        return begin_memory(self._team, num_envs, seed)

    def act(
        self,
        obs: Mapping[str, Any],
        memory: Any,
        info: Mapping[str, Any] | None = None,
        greedy: bool = True,
        *,
        rows: np.ndarray | None = None,
    ) -> tuple[Any, Any]:
        """Let the team act, as `Team.act` of a vector env.

        Raises:
            ConfigurationError: a single env, or a vector env of one game: there is no other manual.
        """
        shuffled, info = self._shuffle(obs, info)
        return self._team.act(shuffled, memory, info, greedy, **({} if rows is None else {"rows": rows}))

    def _shuffle(
        self, obs: Mapping[str, Any], info: Mapping[str, Any] | None
    ) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
        """Return the observation and info with the rules of the next row."""
        rules = obs.get(self._text) if isinstance(obs, Mapping) else None
        if not isinstance(rules, np.ndarray) or not rules.ndim or len(rules) < 2:
            raise ConfigurationError(
                f"texts can be exchanged among two games of a vector env or more, not in one game or one without "
                f"{self._text or 'rules'}"
            )
        if isinstance(info, Mapping) and isinstance(info.get("document"), np.ndarray):
            info = {**info, "document": _pair_keys(info["document"], _of_next(info["document"]))}
        return {**obs, self._text: _of_next(rules)}, info


def _of_next(array: np.ndarray) -> np.ndarray:
    """Return an array [B, …] with row b + 1 at b."""
    return np.roll(array, -1, axis=0)


def _pair_keys(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Keys [B] int64 of a goal of document `own` with a manual of document `other`; sums wrap around.

    The key of a text is not negative. A change of one of the two always changes it, since _ODD is odd.
    """
    return (own * _ODD + other) & _POSITIVE
