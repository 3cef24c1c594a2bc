"""Rollouts: what the actors hand to the learners. B games, T steps, then the boundary observation.

Every agent's experience lies in arrays of its own, so a learner can be handed its column and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from magrounding.agents.player import Player
from magrounding.agents.team import SHARED_TEXT
from magrounding.threads import ParallelMap
from magrounding.vector import Observation, VectorEnv


@dataclass
class Documents:
    """The distinct texts of a rollout.

    Attributes:
        manual: [U, S, L] ids.
        goal: [U, G] ids.
        index: [T+1, B] int64, which text each observation shows.
    """

    manual: np.ndarray
    goal: np.ndarray
    index: np.ndarray


@dataclass
class Column:
    """What one agent lived through; the next rollout overwrites it.

    Attributes:
        observation: [T+1, B, …] for each of the agent's keys, the last row being the boundary step.
        logits: [T, B, A] float32 of the behaviour policy.
        action: [T, B] int64.
        reward: [T, B] float32.
        alive: [T, B] bool, the agent acted in this step; everything else about other steps is to be ignored.
        worth: [T, B] float32 in {0, 1}: the value after the step counts (0: terminated, or a time-out that is a loss).
        continues: [T, B] bool, the next row goes on with the same life.
        cut: ([F], [F]) int64, the (t, b) whose episode a time limit cut off and whose learner bootstraps from `final`.
        final: [F, …] for each key, the true last observation there.
        memory: [B, …] of a recurrent policy before the first step, or None.
        restarts: [T+1, B] bool, the row's observation is the first of an episode (memory starts afresh).
    """

    observation: Observation
    logits: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    alive: np.ndarray
    worth: np.ndarray
    continues: np.ndarray
    cut: tuple[np.ndarray, np.ndarray]
    final: Observation
    memory: Tensor | None
    restarts: np.ndarray


@dataclass
class FinishedGames:
    """Games that ended during a rollout, in the order of their ends.

    Attributes:
        won: [F] bool.
        length: [F] int32.
        returns: [F, n] float32.
    """

    won: np.ndarray
    length: np.ndarray
    returns: np.ndarray


@dataclass
class Rollout:
    """T steps of B games: the texts, one column for each agent, and the games that ended."""

    documents: Documents
    columns: list[Column]
    games: FinishedGames


@dataclass
class Clock:
    """Seconds of wall time by what they were spent on."""

    spent: dict[str, float] = field(default_factory=dict)

    def add(self, what: str, since: float) -> float:
        """Book the time since `since` and return the present."""
        now = time.perf_counter()
        self.spent[what] = self.spent.get(what, 0.0) + now - since
        return now


class RolloutWorker:
    """Plays B games with n policies and records unrolls of T steps.

    Args:
        vec: the games; `start` or `resume` comes before `collect`.
        players: one for each agent.
        unroll: T.
        parallel_map: runs the agents' acting side by side.
        clock: where the seconds of the world and of acting are booked.
        team_reward: part of each agent's reward that is the living agents' mean instead of its own.
    """

    def __init__(
        self,
        vec: VectorEnv,
        players: Sequence[Player],
        unroll: int,
        parallel_map: ParallelMap = map,
        clock: Clock | None = None,
        team_reward: float = 0.0,
    ) -> None:
        self.vec = vec
        self.players = list(players)
        self.unroll = unroll
        self.clock = clock or Clock()
        self._map = parallel_map
        self._team_reward = team_reward
        self._fields = [f for f in vec.spec.fields if f.name not in SHARED_TEXT]
        self._restarted = np.ones(vec.num_envs, np.bool_)
        self._observation: Observation = {}
        self._allocate()

    def start(self, seed: int) -> None:
        """Begin new games."""
        self._observation = self.vec.reset(seed=seed)
        self._restarted = np.ones(self.vec.num_envs, np.bool_)

    def collect(self) -> Rollout:
        """Play T steps; call it after the weights have changed: every text is read again."""
        for player in self.players:
            player.texts.forget()
        memories = [player.memory for player in self.players]
        won, length, returns = [], [], []
        cuts: list[tuple[int, np.ndarray, Observation, np.ndarray]] = []
        for t in range(self.unroll):
            since = time.perf_counter()
            self._record_observation(t)
            since = self.clock.add("world", since)
            actions = self._act(t)
            since = self.clock.add("acting", since)
            self._observation, rewards, terminated, truncated, info = self.vec.step(actions)
            done = info["done"]
            self._record_outcome(t, rewards, terminated, truncated, done)
            if done.any():
                won.append(info["won"][done].copy())
                length.append(info["length"][done].copy())
                returns.append(info["return"][done].copy())
                if truncated.any() and not self.vec.time_limit_is_loss:
                    final = {name: array.copy() for name, array in info["final_observation"].items()}
                    cuts.append((t, info["final_rows"].copy(), final, truncated.copy()))
            self._restarted = done.copy()
            self.clock.add("world", since)
        self._record_observation(self.unroll)
        n = self.vec.num_agents
        return Rollout(
            documents=self._documents(),
            columns=[self._column(i, cuts, memories[i]) for i in range(n)],
            games=FinishedGames(
                np.concatenate([*won, np.zeros(0, np.bool_)]),
                np.concatenate([*length, np.zeros(0, np.int32)]),
                np.concatenate([*returns, np.zeros((0, n), np.float32)]),
            ),
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """Where the games stand, as arrays for `resume`."""
        games = {f"vec.{name}": array for name, array in self.vec.snapshot().items()}
        return {**games, "restarted": self._restarted.copy()}

    def resume(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on exactly where `snapshot` was taken."""
        self._observation = self.vec.restore(
            {name.removeprefix("vec."): array for name, array in snapshot.items() if name.startswith("vec.")}
        )
        self._restarted = snapshot["restarted"].astype(np.bool_)

    def _allocate(self) -> None:
        T, B, n = self.unroll, self.vec.num_envs, self.vec.num_agents
        self._seen = [{f.name: np.zeros((T + 1, B, *f.shape), f.dtype) for f in self._fields} for _ in range(n)]
        texts = [f for f in self.vec.spec.fields if f.name in SHARED_TEXT]
        self._text = {f.name: np.zeros((T + 1, B, *f.shape), f.dtype) for f in texts}
        self._keys = np.zeros((T + 1, B), np.int64)
        self._restarts = np.zeros((T + 1, B), np.bool_)
        self._logits = [np.zeros((T, B, self.vec.spec.num_actions), np.float32) for _ in range(n)]
        self._actions = np.zeros((n, T, B), np.int64)
        self._rewards = np.zeros((n, T, B), np.float32)
        self._alive = np.zeros((n, T + 1, B), np.bool_)
        self._worth = np.zeros((n, T, B), np.float32)
        self._continues = np.zeros((n, T, B), np.bool_)

    def _record_observation(self, t: int) -> None:
        for i, seen in enumerate(self._seen):
            for name, buffer in seen.items():
                buffer[t] = self._observation[name][:, i]
        for name, buffer in self._text.items():
            buffer[t] = self._observation[name]
        self._keys[t] = self.vec.info["document"]
        self._alive[:, t] = self.vec.info["alive"].T
        self._restarts[t] = self._restarted

    def _act(self, t: int) -> np.ndarray:
        """Actions [B, n] int64; each agent reads its own column."""

        def choose(i: int) -> None:
            self.players[i].restart(self._restarted)
            column = {name: buffer[t] for name, buffer in self._seen[i].items()}
            choice = self.players[i].choose(column, self._text["manual"][t], self._text["goal"][t], self._keys[t])
            self._actions[i, t] = choice.action
            self._logits[i][t] = choice.logits

        for _ in self._map(choose, range(len(self.players))):
            pass
        return np.ascontiguousarray(self._actions[:, t].T)

    def _record_outcome(
        self, t: int, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, done: np.ndarray
    ) -> None:
        alive = self._alive[:, t]
        own = np.where(alive, rewards.T, 0.0)  # [n, B]
        team = own.sum(0) / np.maximum(alive.sum(0), 1)
        self._rewards[:, t] = np.where(alive, (1 - self._team_reward) * own + self._team_reward * team, 0.0)
        ended = terminated | truncated | done[:, None]
        cut_off = truncated & (not self.vec.time_limit_is_loss)
        self._worth[:, t] = alive & (~ended | cut_off).T
        self._continues[:, t] = alive & ~ended.T

    def _documents(self) -> Documents:
        _, first, index = np.unique(self._keys, return_index=True, return_inverse=True)
        distinct = {name: buffer.reshape(-1, *buffer.shape[2:])[first] for name, buffer in self._text.items()}
        return Documents(distinct["manual"], distinct["goal"], index.reshape(self._keys.shape).astype(np.int64))

    def _column(
        self, i: int, cuts: list[tuple[int, np.ndarray, Observation, np.ndarray]], memory: Tensor | None
    ) -> Column:
        times, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        final = {name: [buffer[0, :0]] for name, buffer in self._seen[i].items()}
        for t, final_rows, observation, truncated in cuts:
            mine = truncated[final_rows, i]
            rows.append(final_rows[mine])
            times.append(np.full(int(mine.sum()), t, np.int64))
            for name, parts in final.items():
                parts.append(observation[name][mine, i])
        return Column(
            observation=self._seen[i],
            logits=self._logits[i],
            action=self._actions[i],
            reward=self._rewards[i],
            alive=self._alive[i, :-1],
            worth=self._worth[i],
            continues=self._continues[i],
            cut=(np.concatenate(times), np.concatenate(rows)),
            final={name: np.concatenate(parts) for name, parts in final.items()},
            memory=memory,
            restarts=self._restarts,
        )
