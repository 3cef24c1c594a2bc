"""The shuffled-manual control: agents that read must play worse with the rules of another game, in any world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.play.actor import Actor, begin_memory

_ODD = 0x1E37_79B9_7F4A_7C15
_POSITIVE = np.iinfo(np.int64).max


def other_document(keys: np.ndarray, manuals: np.ndarray) -> np.ndarray:
    """Return keys [B] of documents that have the manuals of others, given their own keys and the others' [B].

    They are not negative, as those of any text; sums wrap around. A change of one of the two always changes them, since
    _ODD is odd.
    """
    return (keys * _ODD + manuals) & _POSITIVE


class ShuffledManuals:
    """A team to which game b of a vector env shows the rules of game b + 1 (the last one those of the first).

    Everything else is the game's own. By chance the other text may agree with the game. It changes when the other game
    restarts, even in the middle of an episode. `text` is the field that states the rules.
    """

    draws = True

    def __init__(self, team: Actor, text: str = "manual") -> None:
        self._team, self._text = team, text
        self.accepts_rows = bool(getattr(team, "accepts_rows", False))

    def initial_memory(self, num_envs: int, seed: int = 0) -> Any:
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

        A single env, or a vector env of one game, is a ConfigurationError: there is no other manual.
        """
        rules = obs.get(self._text) if isinstance(obs, Mapping) else None
        if not isinstance(rules, np.ndarray) or not rules.ndim or len(rules) < 2:
            raise ConfigurationError(
                f"texts can be exchanged among two games of a vector env or more, not in one game or one without "
                f"{self._text or 'rules'}"
            )
        shown, info = self._shown(obs, info)
        return self._team.act(shown, memory, info, greedy, **({} if rows is None else {"rows": rows}))

    def _shown(
        self, obs: Mapping[str, Any], info: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
        """Observations and infos of a vector env with other rules; the keys of documents change with them."""
        if isinstance(info, Mapping) and isinstance(key := info.get("document"), np.ndarray):
            info = {**info, "document": other_document(key, np.roll(key, -1))}
        return {**obs, self._text: np.roll(obs[self._text], -1, axis=0)}, info
