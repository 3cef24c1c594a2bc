"""Episodes: an actor plays the episodes of a batch to their ends, in each row a number that is fixed beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.teams.actor import begin_memory
from magrounding.vector import VectorEnv


class Episodes:
    """The loop of evaluations, recordings, matches and people's games.

    The first episodes of a batch to end are too short and, where losing is quick, too often lost. So each row has a
    quota, and what it plays after that does not count:

        while episodes.rows.size:
            actions = episodes.choose()
            rows, numbers = episodes.play(actions)  # of the episodes that ended

    Args:
        actor, greedy: choose the actions.
        vec: the vector env, which is reset; row b plays seed + b.
        count: E, how many count; the first rows play one more where the rows do not divide them evenly.
        draw_seed: of what an actor draws that `draws`.
        explain: an actor that `explains` reports of its choices.
        replay: where a fault of its simulator ended an episode, its row plays another one instead.

    Attributes:
        rows: [R] whose quota is not yet played.
        numbers: [R] of the episode that each of them plays; those of a row follow one another.
        finished: how many episodes have ended.
        obs, info: the latest of the vector env.
        rewards, truncated: [B, n] of the step that led here; there after the first one.
        memory: of the actor.
    """

    rewards: np.ndarray
    truncated: np.ndarray

    def __init__(
        self,
        actor: Any,
        vec: VectorEnv,
        count: int,
        seed: int,
        greedy: bool = True,
        *,
        draw_seed: int = 0,
        explain: bool = False,
        replay: bool = False,
    ) -> None:
        self._actor, self._vec, self._greedy, self._replay = actor, vec, greedy, replay
        self._accepts_rows = bool(getattr(actor, "accepts_rows", False))  # only episodes that count need thought
        self._explain = {"explain": True} if explain and getattr(actor, "explains", False) else {}
        self._quota, self._first = quotas(count, vec.num_envs)
        self._played = np.zeros(vec.num_envs, np.int64)
        self.rows = np.flatnonzero(self._quota)
        self.memory = begin_memory(actor, vec.num_envs, draw_seed)
        self.obs, self.info = vec.reset(seed=seed)

    @property
    def numbers(self) -> np.ndarray:
        return (self._first + self._played)[self.rows]

    @property
    def finished(self) -> int:
        return int(self._played.sum())

    @property
    def which(self) -> dict[str, np.ndarray]:
        """The keyword `rows` for an actor that takes it."""
        return {"rows": self.rows} if self._accepts_rows else {}

    def choose(self) -> np.ndarray:
        """Return the actor's actions [B, n]."""
        keywords = {**self.which, **self._explain}
        actions, self.memory = self._actor.act(self.obs, self.memory, self.info, self._greedy, **keywords)
        return actions

    def play(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play a step of actions [B, n]; return rows [F] and numbers [F] of the episodes that ended in it and count."""
        rows, numbers = self.rows, self.numbers
        self.obs, self.rewards, _, self.truncated, self.info = self._vec.step(actions)
        ended = self.info.done[rows]
        if self._replay:
            ended &= ~self.info.lost[rows]
        if ended.any():
            self._played[rows[ended]] += 1
            self.rows = np.flatnonzero(self._played < self._quota)
        return rows[ended], numbers[ended]


def quotas(count: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of episodes of each row [B], and the place of its first one in the list of all [B]."""
    quota = np.full(rows, count // rows)
    quota[: count % rows] += 1
    return quota, np.cumsum(quota) - quota
