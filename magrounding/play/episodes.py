"""Episodes: an actor plays games of a batch to their ends, each row a number of them that is fixed beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.play.actor import begin_memory
from magrounding.vector import VectorEnv


class Episodes:
    """The loop of whatever plays games to their ends: evaluations, recordings, matches, people's games.

    The first games of a batch to end are too short and, where losing is quick, too often lost. So each row has a
    quota, and what it plays after that does not count:

        while episodes.rows.size:
            actions = episodes.choose()
            rows, games = episodes.play(actions)  # those that ended

    Args:
        actor: who plays.
        vec: the games; they begin anew.
        games: E, how many count; the first rows play one more where the rows do not divide them evenly.
        seed: row b plays seed + b.
        greedy: as for `Actor.act`.
        draw_seed: of what an actor draws that `draws`.
        explain: an actor that `explains` reports of its choices.
        replay: where a fault of its simulator ended a game, its row plays another one instead.

    Attributes:
        rows: [R] whose quota is not yet played.
        games: [R] the number of the game that each of them plays; those of a row follow one another.
        finished: how many games have ended.
        obs, info: of the games now.
        rewards, truncated: [B, n] of the step that led here; there after the first one.
        memory: of the actor.
    """

    rewards: np.ndarray
    truncated: np.ndarray

    def __init__(
        self,
        actor: Any,
        vec: VectorEnv,
        games: int,
        seed: int,
        greedy: bool = True,
        *,
        draw_seed: int = 0,
        explain: bool = False,
        replay: bool = False,
    ) -> None:
        self._actor, self._vec, self._greedy, self._replay = actor, vec, greedy, replay
        self._accepts_rows = bool(getattr(actor, "accepts_rows", False))  # only games that count need thought
        self._explain = {"explain": True} if explain and getattr(actor, "explains", False) else {}
        self._quota, self._first = quotas(games, vec.num_envs)
        self._played = np.zeros(vec.num_envs, np.int64)
        self.rows = np.flatnonzero(self._quota)
        self.memory = begin_memory(actor, vec.num_envs, draw_seed)
        self.obs, self.info = vec.reset(seed=seed)

    @property
    def games(self) -> np.ndarray:
        return (self._first + self._played)[self.rows]

    @property
    def finished(self) -> int:
        return int(self._played.sum())

    @property
    def which(self) -> dict[str, np.ndarray]:
        """The keyword `rows` for an actor that takes it."""
        return {"rows": self.rows} if self._accepts_rows else {}

    def choose(self) -> np.ndarray:
        """What the actor plays now, [B, n]."""
        actions, self.memory = self._actor.act(
            self.obs, self.memory, self.info, self._greedy, **self.which, **self._explain
        )
        return actions

    def play(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play a step of actions [B, n]; returns rows [F] and numbers [F] of the games that ended in it and count."""
        rows, games = self.rows, self.games
        self.obs, self.rewards, _, self.truncated, self.info = self._vec.step(actions)
        ended = self.info.done[rows]
        if self._replay:
            ended &= ~self.info.lost[rows]
        if ended.any():
            self._played[rows[ended]] += 1
            self.rows = np.flatnonzero(self._played < self._quota)
        return rows[ended], games[ended]


def quotas(games: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """How many games each row of a batch plays [B], and where in the list of all games the row's own begin [B]."""
    quota = np.full(rows, games // rows)
    quota[: games % rows] += 1
    return quota, np.cumsum(quota) - quota
