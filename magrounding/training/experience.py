"""What the actors hand to the learners: B games, T steps, then the boundary observation.

Every agent's experience lies in arrays of its own, so a learner can be handed its column and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import STATE
from magrounding.brief import brief
from magrounding.training.text_track import TextColumn
from magrounding.vector import Observation


@dataclass
class Column:
    """What one agent lived through; the next rollout overwrites it.

    Attributes:
        observation: [T+1, B, …] for each of the agent's fields that is no text, the last row being the boundary step.
        texts: by the names in `Policy.reads`.
        logits: [T, B, A] float32 of the behaviour policy.
        value: [T, B] float32, what it expected.
        action: [T, B] int64.
        reward: [T, B] float32.
        alive: [T, B] bool, the agent acted in this step; everything else about other steps is to be ignored.
        discount: [T, B] float32 in {0, 1}: the value after the step counts (0: terminated, or a time-out that is a
            loss); learners multiply it by their gamma.
        continues: [T, B] bool, the next row goes on with the same life.
        cut: ([F], [F]) int64, the (t, b) whose episode a time limit or a fault cut off: learners go on from `final`.
        final: [F, …] for each field, the true last observation there.
        memory: [B, …] of a policy that remembers before the first step, or None.
        last_memory: the same before the boundary step.
        restarts: [T+1, B] bool, the row's observation is the first of an episode (memory starts afresh).
        last_action: [T+1, B] int64, what the agent did in the step before; −1 at the start of an episode.
        record: [T+1, B, …] by name, what the network wants to be replayed; 0 in the boundary step.
        extras: [T+1, B, …] of each need (`agents.policy`) that was declared; neutral in the boundary step.
        metrics: what else the log is to say of the agent's play.
    """

    __repr__ = brief

    observation: Observation
    texts: dict[str, TextColumn]
    logits: np.ndarray
    value: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    alive: np.ndarray
    discount: np.ndarray
    continues: np.ndarray
    cut: tuple[np.ndarray, np.ndarray]
    final: Observation
    memory: Tensor | None
    last_memory: Tensor | None
    restarts: np.ndarray
    last_action: np.ndarray
    record: dict[str, np.ndarray] = field(default_factory=dict)
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass
class FinishedGames:
    """Games that ended during a rollout, in the order of their ends.

    Not those in which a teacher ever led, nor those that a fault of their simulator ended.

    Attributes:
        won: [F] bool.
        score: [F] float32.
        length: [F] int32.
        returns: [F, n] float32.
    """

    __repr__ = brief

    won: np.ndarray
    score: np.ndarray
    length: np.ndarray
    returns: np.ndarray

    @classmethod
    def of(cls, parts: Sequence[FinishedGames], num_agents: int) -> FinishedGames:
        """Several lists of games of n agents as one; there may be none."""
        nothing = cls(
            np.zeros(0, np.bool_), np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros((0, num_agents), np.float32)
        )
        whole = [*parts, nothing]
        return cls(*(np.concatenate([getattr(part, each.name) for part in whole]) for each in fields(cls)))


@dataclass
class Rollout:
    """T steps of B games: one column for each agent, and the games that ended."""

    __repr__ = brief

    columns: list[Column]
    games: FinishedGames

    def joined(self) -> list[Column]:
        """The same experience as one column of n · B games, for a network that plays for all agents."""
        return [_join(self.columns)]


def _join(columns: Sequence[Column]) -> Column:
    """Columns of the same B games side by side; what all agents read is the same."""

    def beside(name: str, axis: int = 1) -> np.ndarray:
        return np.concatenate([getattr(column, name) for column in columns], axis)

    def each(name: str, axis: int = 1) -> dict[str, np.ndarray]:
        parts = [getattr(column, name) for column in columns]
        return {key: np.concatenate([part[key] for part in parts], axis) for key in parts[0]}

    def memories(name: str) -> Tensor | None:
        parts = [memory for column in columns if (memory := getattr(column, name)) is not None]
        return torch.cat(parts) if parts else None

    first, batch = columns[0], columns[0].action.shape[1]
    times, rows = zip(*(column.cut for column in columns), strict=True)
    extras = each("extras") | {STATE: first.extras[STATE]} if STATE in first.extras else each("extras")
    return Column(
        observation=each("observation"),
        texts={name: _join_texts([column.texts[name] for column in columns]) for name in first.texts},
        logits=beside("logits"),
        value=beside("value"),
        action=beside("action"),
        reward=beside("reward"),
        alive=beside("alive"),
        discount=beside("discount"),
        continues=beside("continues"),
        cut=(np.concatenate(times), np.concatenate([own + i * batch for i, own in enumerate(rows)])),
        final=each("final", 0),
        memory=memories("memory"),
        last_memory=memories("last_memory"),
        restarts=beside("restarts"),
        last_action=beside("last_action"),
        record=each("record"),
        extras=extras,
        metrics={name: float(np.mean([column.metrics[name] for column in columns])) for name in first.metrics},
    )


def _join_texts(columns: Sequence[TextColumn]) -> TextColumn:
    """Texts of the same B games side by side: agents who read the same share it, others' are put behind one another."""
    first = columns[0]
    shared = all(column.ids is first.ids for column in columns)
    starts = np.cumsum([0, *(0 if shared else len(next(iter(column.ids.values()))) for column in columns)])
    names = first.ids
    return TextColumn(
        names if shared else {name: np.concatenate([column.ids[name] for column in columns]) for name in names},
        np.concatenate([column.index + start for column, start in zip(columns, starts, strict=False)], 1),
        np.concatenate([column.final + start for column, start in zip(columns, starts, strict=False)]),
    )


def share_rewards(rewards: np.ndarray, acting: np.ndarray, team_reward: float) -> np.ndarray:
    """Rewards [n, …] of those who act, with `team_reward` as the part of each that is their mean instead of its own."""
    own = np.where(acting, rewards, 0.0)
    team = own.sum(0) / np.maximum(acting.sum(0), 1)
    return np.where(acting, (1 - team_reward) * own + team_reward * team, 0.0)


def others_of(i: int, actions: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """What all agents but i did (OTHERS), [T+1, B, n − 1] int64, from actions and acted [n, T, B]."""
    did = np.where(acted, actions, -1)
    others = np.moveaxis(np.delete(did, i, 0), 0, -1)
    return np.pad(others, ((0, 1), (0, 0), (0, 0)), constant_values=-1)
