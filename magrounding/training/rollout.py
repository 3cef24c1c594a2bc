"""Rollouts: what the actors hand to the learners. B games, T steps, then the boundary observation.

Every agent's experience lies in arrays of its own, so a learner can be handed its column and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.player import Player
from magrounding.endi.diagnostics import describe_divisions
from magrounding.observation import SHARED_TEXT, shared_text
from magrounding.threads import ParallelMap
from magrounding.training.clock import Clock
from magrounding.training.teacher import Teacher
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
class OthersColumn:
    """What the other agents did, in agent order; of the boundary step nothing.

    Attributes:
        action: [T+1, B, n − 1] int64.
        acted: [T+1, B, n − 1] bool, who was alive to act.
    """

    action: np.ndarray
    acted: np.ndarray

    @classmethod
    def of(cls, i: int, actions: np.ndarray, acted: np.ndarray) -> OthersColumn:
        """Of all but agent i, from actions and acted [n, T, B]."""
        others = (np.moveaxis(np.delete(array, i, 0), 0, -1) for array in (actions, acted))
        return cls(*(np.pad(array, ((0, 1), (0, 0), (0, 0))) for array in others))


@dataclass
class Column:
    """What one agent lived through; the next rollout overwrites it.

    Attributes:
        observation: [T+1, B, …] for each of the agent's keys, the last row being the boundary step. A network that
            draws noise finds there as `noise` what it drew; 0 in the boundary step.
        logits: [T, B, A] float32 of the behaviour policy.
        value: [T, B] float32, what it expected.
        action: [T, B] int64.
        reward: [T, B] float32.
        alive: [T, B] bool, the agent acted in this step; everything else about other steps is to be ignored.
        worth: [T, B] float32 in {0, 1}: the value after the step counts (0: terminated, or a time-out that is a loss).
        continues: [T, B] bool, the next row goes on with the same life.
        cut: ([F], [F]) int64, the (t, b) whose episode a time limit cut off and whose learner bootstraps from `final`.
        final: [F, …] for each key, the true last observation there.
        memory: [B, …] of a recurrent policy before the first step, or None.
        restarts: [T+1, B] bool, the row's observation is the first of an episode (memory starts afresh).
        labels: [T, B, A] bool, the moves that a teacher held to be best, or None without a teacher.
        others: what the others did, for a network that models them, or None.
        facts: what else the log is to tell of the agent's play.
        state: [T, B, S] of the whole games, for a learner that sees more than its agent, or None.
    """

    observation: Observation
    logits: np.ndarray
    value: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    alive: np.ndarray
    worth: np.ndarray
    continues: np.ndarray
    cut: tuple[np.ndarray, np.ndarray]
    final: Observation
    memory: Tensor | None
    restarts: np.ndarray
    labels: np.ndarray | None = None
    others: OthersColumn | None = None
    facts: dict[str, float] = field(default_factory=dict)
    state: np.ndarray | None = None


@dataclass
class FinishedGames:
    """Games that ended during a rollout, in the order of their ends; not those in which a teacher ever led.

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

    def joined(self) -> tuple[Documents, list[Column]]:
        """The same experience as one column of n · B games, for a network that plays for all agents."""
        n, batch = len(self.columns), self.documents.index.shape[1]
        index = np.tile(self.documents.index, (1, n))
        return Documents(self.documents.manual, self.documents.goal, index), [_join(self.columns, batch)]


def _join(columns: Sequence[Column], batch: int) -> Column:
    """Columns of the same B games side by side."""

    def beside(arrays: Sequence[np.ndarray], axis: int = 1) -> np.ndarray:
        return np.concatenate(arrays, axis)

    first = columns[0]
    times, rows = zip(*(column.cut for column in columns), strict=True)
    memories = [column.memory for column in columns if column.memory is not None]
    labels = [column.labels for column in columns if column.labels is not None]
    others = [column.others for column in columns if column.others is not None]
    return Column(
        observation={name: beside([c.observation[name] for c in columns]) for name in first.observation},
        logits=beside([c.logits for c in columns]),
        value=beside([c.value for c in columns]),
        action=beside([c.action for c in columns]),
        reward=beside([c.reward for c in columns]),
        alive=beside([c.alive for c in columns]),
        worth=beside([c.worth for c in columns]),
        continues=beside([c.continues for c in columns]),
        cut=(beside(times, 0), beside([own + i * batch for i, own in enumerate(rows)], 0)),
        final={name: beside([c.final[name] for c in columns], 0) for name in first.final},
        memory=torch.cat(memories) if memories else None,
        restarts=beside([c.restarts for c in columns]),
        labels=beside(labels) if labels else None,
        others=OthersColumn(beside([o.action for o in others]), beside([o.acted for o in others])) if others else None,
        facts={name: float(np.mean([c.facts[name] for c in columns])) for name in first.facts},
        state=first.state,
    )


def share_rewards(rewards: np.ndarray, acting: np.ndarray, team_reward: float) -> np.ndarray:
    """Rewards [n, …] of those who act, with `team_reward` as the part of each that is their mean instead of its own."""
    own = np.where(acting, rewards, 0.0)
    team = own.sum(0) / np.maximum(acting.sum(0), 1)
    return np.where(acting, (1 - team_reward) * own + team_reward * team, 0.0)


class RolloutWorker:
    """Plays B games with n policies and records unrolls of T steps.

    Args:
        vec: the games; `start` or `resume` comes before `collect`.
        players: one for each agent.
        unroll: T.
        parallel_map: runs the agents' acting side by side.
        clock: where the seconds of the world and of acting are booked.
        team_reward: part of each agent's reward that is the living agents' mean instead of its own.
        teacher: labels every step and leads some games; None for learners who find out by themselves.
        with_state: record the games' states too.
    """

    def __init__(
        self,
        vec: VectorEnv,
        players: Sequence[Player],
        unroll: int,
        parallel_map: ParallelMap = map,
        clock: Clock | None = None,
        team_reward: float = 0.0,
        teacher: Teacher | None = None,
        with_state: bool = False,
    ) -> None:
        self.vec = vec
        self.players = list(players)
        self.unroll = unroll
        self.clock = clock or Clock()
        self._map = parallel_map
        self._team_reward = team_reward
        self._teacher = teacher
        self._with_state = with_state
        self._fields = [f for f in vec.spec.fields if f.name not in SHARED_TEXT]
        self._restarted = np.ones(vec.num_envs, np.bool_)
        self._helped = np.zeros(vec.num_envs, np.bool_)  # games in which the teacher led
        self._observation: Observation = {}
        self._allocate()

    def start(self, seed: int) -> None:
        """Begin new games."""
        self._observation = self.vec.reset(seed=seed)
        self._restarted = np.ones(self.vec.num_envs, np.bool_)
        self._helped = np.zeros(self.vec.num_envs, np.bool_)

    def collect(self, teacher_share: float = 0.0, steps: int = 0) -> Rollout:
        """Play T steps; call it after the weights have changed: every text is read again.

        Args:
            teacher_share: probability of each game to be led by the teacher.
            steps: environment steps so far, which decide the teacher's draws.
        """
        if self._teacher is not None:
            self._teacher.begin(self.vec.num_envs, teacher_share, steps)
            self._helped |= self._teacher.leads
        for player in self.players:
            player.texts.forget()
        for taken in self._taken:
            taken.clear()
        memories = [player.memory for player in self.players]
        won, length, returns = [], [], []
        cuts: list[tuple[int, np.ndarray, Observation, np.ndarray]] = []
        for t in range(self.unroll):
            since = time.perf_counter()
            self._record_observation(t)
            since = self.clock.add("world", since)
            actions = self._act(t)
            since = self.clock.add("acting", since)
            if self._teacher is not None:
                self._labels[:, t] = self._teacher.label().transpose(1, 0, 2)
                self._teacher.lead(actions)
                self._actions[:, t] = actions.T
                since = self.clock.add("teaching", since)
            self._observation, rewards, terminated, truncated, info = self.vec.step(actions)
            done = info["done"]
            self._record_outcome(t, rewards, terminated, truncated, done)
            own = done & ~self._helped
            if done.any():
                won.append(info["won"][own])
                length.append(info["length"][own])
                returns.append(info["return"][own])
                if truncated.any() and not self.vec.time_limit_is_loss:
                    final = {name: array.copy() for name, array in info["final_observation"].items()}
                    cuts.append((t, info["final_rows"].copy(), final, truncated.copy()))
            self._restarted = done.copy()
            self._helped &= ~done if self._teacher is None else ~done | self._teacher.leads
            self.clock.add("world", since)
        self._record_observation(self.unroll)
        n = self.vec.num_agents
        columns = [self._column(i, cuts, memories[i]) for i in range(n)]
        if all(self._taken):
            facts = describe_divisions(np.array(self._taken), self._alive[:, :-1])
            columns = [replace(column, facts=own) for column, own in zip(columns, facts, strict=True)]
        return Rollout(
            documents=self._documents(),
            columns=columns,
            games=FinishedGames(
                np.concatenate([*won, np.zeros(0, np.bool_)]),
                np.concatenate([*length, np.zeros(0, np.int32)]),
                np.concatenate([*returns, np.zeros((0, n), np.float32)]),
            ),
        )

    def snapshot(self) -> dict[str, np.ndarray]:
        """Where the games stand, as arrays for `resume`."""
        games = {f"vec.{name}": array for name, array in self.vec.snapshot().items()}
        return {**games, "restarted": self._restarted.copy(), "helped": self._helped.copy()}

    def resume(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on exactly where `snapshot` was taken."""
        self._observation = self.vec.restore(
            {name.removeprefix("vec."): array for name, array in snapshot.items() if name.startswith("vec.")}
        )
        self._restarted = snapshot["restarted"].astype(np.bool_)
        self._helped = snapshot["helped"].astype(np.bool_)

    def _allocate(self) -> None:
        T, B, n = self.unroll, self.vec.num_envs, self.vec.num_agents
        self._states = np.zeros((T, B, _state_size(self.vec)), np.int16) if self._with_state else None
        self._seen = [{f.name: np.zeros((T + 1, B, *f.shape), f.dtype) for f in self._fields} for _ in range(n)]
        for seen, player in zip(self._seen, self.players, strict=True):
            noise = player.policy.draw_noise(B, torch.Generator())
            if noise is not None:
                seen["noise"] = np.zeros((T + 1, *noise.shape), noise.numpy().dtype)
        self._taken: list[list[np.ndarray]] = [[] for _ in range(n)]
        texts = shared_text(self.vec.spec.allocate(B))
        self._text = {name: np.zeros((T + 1, *array.shape), array.dtype) for name, array in texts.items()}
        self._keys = np.zeros((T + 1, B), np.int64)
        self._restarts = np.zeros((T + 1, B), np.bool_)
        self._logits = [np.zeros((T, B, self.vec.spec.num_actions), np.float32) for _ in range(n)]
        self._values = np.zeros((n, T, B), np.float32)
        self._actions = np.zeros((n, T, B), np.int64)
        self._labels = np.zeros((n, T, B, self.vec.spec.num_actions) if self._teacher else 0, np.bool_)
        self._rewards = np.zeros((n, T, B), np.float32)
        self._alive = np.zeros((n, T + 1, B), np.bool_)
        self._worth = np.zeros((n, T, B), np.float32)
        self._continues = np.zeros((n, T, B), np.bool_)

    def _record_observation(self, t: int) -> None:
        for i, seen in enumerate(self._seen):
            for key in self._fields:
                seen[key.name][t] = self._observation[key.name][:, i]
        for name, array in shared_text(self._observation).items():
            self._text[name][t] = array
        self._keys[t] = self.vec.info["document"]
        self._alive[:, t] = self.vec.info["alive"].T
        self._restarts[t] = self._restarted
        if self._states is not None and t < self.unroll:
            self._states[t] = self.vec.state()

    def _act(self, t: int) -> np.ndarray:
        """Actions [B, n] int64; each agent reads its own column."""

        def choose(i: int) -> None:
            player = self.players[i]
            player.restart(self._restarted)
            noise = player.policy.draw_noise(self.vec.num_envs, player.generator)
            if noise is not None:
                self._seen[i]["noise"][t] = noise.numpy()
            column = {name: buffer[t] for name, buffer in self._seen[i].items()}
            choice = player.choose(column, self._text["manual"][t], self._text["goal"][t], self._keys[t])
            if player.taken is not None:
                self._taken[i].append(player.taken.copy())
            self._actions[i, t] = choice.action
            self._logits[i][t] = choice.logits
            self._values[i, t] = choice.value

        for _ in self._map(choose, range(len(self.players))):
            pass
        return np.ascontiguousarray(self._actions[:, t].T)

    def _record_outcome(
        self, t: int, rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, done: np.ndarray
    ) -> None:
        alive = self._alive[:, t]
        self._rewards[:, t] = share_rewards(rewards.T, alive, self._team_reward)
        ended = terminated | truncated | done[:, None]
        cut_off = truncated & (not self.vec.time_limit_is_loss)
        self._worth[:, t] = alive & (~ended | cut_off).T
        self._continues[:, t] = alive & ~ended.T

    def _documents(self) -> Documents:
        _, first, index = np.unique(self._keys, return_index=True, return_inverse=True)
        rows = self._keys.size
        distinct = {name: buffer.reshape(rows, *buffer.shape[2:])[first] for name, buffer in self._text.items()}
        return Documents(distinct["manual"], distinct["goal"], index.reshape(self._keys.shape).astype(np.int64))

    def _column(
        self, i: int, cuts: list[tuple[int, np.ndarray, Observation, np.ndarray]], memory: Tensor | None
    ) -> Column:
        times, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        final = {key.name: [self._seen[i][key.name][0, :0]] for key in self._fields}
        for t, final_rows, observation, truncated in cuts:
            mine = truncated[final_rows, i]
            rows.append(final_rows[mine])
            times.append(np.full(int(mine.sum()), t, np.int64))
            for name, parts in final.items():
                parts.append(observation[name][mine, i])
        return Column(
            observation=self._seen[i],
            logits=self._logits[i],
            value=self._values[i],
            action=self._actions[i],
            reward=self._rewards[i],
            alive=self._alive[i, :-1],
            worth=self._worth[i],
            continues=self._continues[i],
            cut=(np.concatenate(times), np.concatenate(rows)),
            final={name: np.concatenate(parts) for name, parts in final.items()},
            memory=memory,
            restarts=self._restarts,
            labels=self._labels[i] if self._teacher else None,
            others=OthersColumn.of(i, self._actions, self._alive[:, :-1])
            if self.players[i].policy.models_others
            else None,
            state=self._states,
        )


def _state_size(vec: VectorEnv) -> int:
    return max(place.stop for place, _ in vec.state_layout.values())
