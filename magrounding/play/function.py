"""Function: a Python function as an actor, which chooses for one agent at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from magrounding.errors import InvalidAction
from magrounding.play.action_names import action_name
from magrounding.spec import CHOICES, EnvSpec
from magrounding.vector import observation_of
from magrounding.vocabulary import plain_text

MoveFunction = Callable[[dict[str, np.ndarray], dict[str, int], dict[str, Any]], Any]
"""(observation, legal_actions, info) → action, see `FunctionTeam`."""


class FunctionTeam:
    """Agents whose moves a Python function chooses: a heuristic, a search, a client of a language model.

    The function is called as `function(observation, legal_actions, info)`, once in each step for each agent that it
    plays and that is alive, in the order of games and agents.

    * `observation`: the agent's own arrays by field, copies; shared texts among them.
    * `legal_actions`: name → number; where actions are texts to choose from, these are the names.
    * `info`: `agent` and `game`, their numbers; `step`, counted from 0; `score` so far; `text`, the text fields but the
      choices in words: a string each, or a list of strings for a field with rows, such as a manual.

    It returns a number or a name in `legal_actions`. The number of an action that is not legal now is played all the
    same, and does nothing. Agents other than `agents` get action 0.
    """

    accepts_rows = True

    def __init__(self, function: MoveFunction, spec: EnvSpec, agents: Sequence[int]) -> None:
        self._function, self._spec, self._agents = function, spec, tuple(agents)

    def act(
        self,
        obs: Mapping[str, np.ndarray],
        memory: Any = None,
        info: Any = None,
        greedy: bool = True,
        rows: np.ndarray | None = None,
    ) -> tuple[np.ndarray, None]:
        """Return actions [B, n] int64 for a vector env's observation; InvalidAction where the function returns none."""
        mask = obs["action_mask"]
        alive = np.ones(mask.shape[:2], np.bool_) if info is None else info["alive"]
        actions = np.zeros(mask.shape[:2], np.int64)
        for game in range(len(mask)) if rows is None else rows.tolist():
            for agent in self._agents:
                if alive[game, agent]:
                    actions[game, agent] = self._ask(obs, info, game, agent)
        return actions, None

    def _ask(self, obs: Mapping[str, np.ndarray], info: Any, game: int, agent: int) -> int:
        own = observation_of(self._spec, obs, game, agent)
        legal: dict[str, int] = {}
        for action in np.flatnonzero(obs["action_mask"][game, agent]).tolist():
            legal.setdefault(action_name(self._spec, obs, game, agent, action), action)
        # The length and score of a game that has just ended are those of its end; the next one has begun.
        if info is None or info["done"][game]:
            step, score = 0, 0.0
        else:
            step, score = int(info["length"][game]), float(info["score"][game])
        facts = {"agent": agent, "game": game, "step": step, "score": score, "text": self._texts(own)}
        chosen = self._function({name: array.copy() for name, array in own.items()}, legal, facts)
        action = legal.get(chosen) if isinstance(chosen, str) else chosen
        count = self._spec.num_actions
        if isinstance(action, bool | np.bool_) or not isinstance(action, int | np.integer) or not 0 <= action < count:
            name = getattr(self._function, "__name__", type(self._function).__name__)
            raise InvalidAction(
                f"{name} chose {chosen!r} for agent {agent}: a legal action's name, or 0 to {count - 1}"
            )
        return int(action)

    def _texts(self, own: Mapping[str, np.ndarray]) -> dict[str, str | list[str]]:
        words = self._spec.words
        return {
            each.name: plain_text(words, own[each.name].tolist())
            if own[each.name].ndim == 1
            else [plain_text(words, row.tolist()) for row in own[each.name] if row.any()]
            for each in self._spec.texts
            if each.name != CHOICES
        }
