"""Trajectory: T steps of B games as one agent lived through them; `games` makes tensors of some, `gae` its returns.

Every agent has arrays of its own, so a learner can be handed its trajectory and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import STATE, Batch, Reading
from magrounding.brief import brief
from magrounding.vector import Observation


@dataclass
class Texts:
    """Texts of one kind, each distinct one once, and which of them an agent was shown.

    Attributes:
        ids: [U, …] of each field that is read together.
        index: [T+1, B] int64, which text each observation shows; [T+1, B, C] for texts to choose from.
    """

    __repr__ = brief

    ids: dict[str, np.ndarray]
    index: np.ndarray


@dataclass
class Truncations:
    """Episodes that a time limit that is no loss, or a fault, cut off; learners go on from their last observations.

    Attributes:
        where: ([F], [F]) int64, the steps t and the games b.
        observation: [F, …] for each field that is no text, the true last observations.
        texts: [F] or [F, C] int64, which of `Trajectory.texts` they show.
    """

    __repr__ = brief

    where: tuple[np.ndarray, np.ndarray]
    observation: Observation
    texts: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.where[0])


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of some games [b] as tensors; the names are those of `Trajectory`."""

    __repr__ = brief

    logits: Tensor
    value: Tensor
    action: Tensor
    reward: Tensor
    alive: Tensor
    discount: Tensor
    nonterminal: Tensor


@dataclass(frozen=True, eq=False)
class Minibatch(Steps):
    """Some games [b] of a trajectory as tensors on one device, ready for the policy; segments of games in their place.

    Attributes:
        index: [b] int64, which games, see `Trajectory.games`.
        inputs: T + 1 steps, the last of them the boundary; texts have ids and no encoding yet.
        truncated: one step of F truncated episodes, their true last observations, without memory; None: there are none.
        truncated_at: ([F], [F]) int64, the steps and the places among these games.
        extras: [T+1, b, …] as in `Trajectory`.
        carried: [B, …], the trajectory's own.
    """

    __repr__ = brief

    index: Tensor
    inputs: Batch
    truncated: Batch | None
    truncated_at: tuple[Tensor, Tensor]
    extras: dict[str, Tensor]
    carried: Tensor | None


@dataclass
class Trajectory:
    """T steps of B games as one agent lived through them, and the boundary observation; the next rollout overwrites it.

    Attributes:
        observation: [T+1, B, …] for each of the agent's fields that is no text, the last row being the boundary step.
        texts: by the names in `Policy.reads`.
        truncations: episodes that did not end by themselves.
        logits: [T, B, A] float32 of the behaviour policy.
        value: [T, B] float32, what it predicted.
        action: [T, B] int64.
        reward: [T, B] float32.
        alive: [T, B] bool, the agent acted in this step; everything else about other steps is to be ignored.
        discount: [T, B] float32 in {0, 1}: the value after the step counts (0: terminated, or a time-out that is a
            loss); learners multiply it by their gamma.
        nonterminal: [T, B] bool, the next row goes on with the same episode of the same living agent.
        memory: [B, …] of a policy that remembers before the first step, or None; [S · B, …] before each of S segments.
        last_memory: the same before the boundary step.
        restarts: [T+1, B] bool, the row's observation is the first of an episode (memory starts afresh).
        last_action: [T+1, B] int64, what the agent did in the step before; −1 at the start of an episode.
        record: [T+1, B, …] by name, what the network needs to compute the step again; 0 in the boundary step.
        extras: [T+1, B, …] of each need (`agents.policy`) that was declared; neutral in the boundary step.
        metrics: what else the log is to say of the agent's play.
        carried: [B, …] that the learner fills with memory before the boundary, for demonstrations that go on; or None.
        segments: S, the parts of T / S steps that each game is cut into for learning.
    """

    __repr__ = brief

    observation: Observation
    texts: dict[str, Texts]
    truncations: Truncations
    logits: np.ndarray
    value: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    alive: np.ndarray
    discount: np.ndarray
    nonterminal: np.ndarray
    memory: Tensor | None
    last_memory: Tensor | None
    restarts: np.ndarray
    last_action: np.ndarray
    record: dict[str, np.ndarray] = field(default_factory=dict)
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    carried: Tensor | None = None
    segments: int = 1

    @property
    def num_games(self) -> int:
        """B."""
        return self.action.shape[1]

    def place(self, games: np.ndarray, boundary: int = 0) -> tuple[slice | np.ndarray, np.ndarray]:
        """Steps [T / S (+ `boundary`), b] and games [b] of some of S · B segments, all first parts first."""
        length, (part, game) = len(self.action) // self.segments, np.divmod(games, self.num_games)
        steps = part * length + np.arange(length + boundary)[:, None]
        return slice(length + boundary) if self.segments == 1 else steps, game  # slices are copied faster

    def steps(self, device: torch.device | str = "cpu") -> Steps:
        """The steps of all games as tensors."""
        return Steps(**{each.name: to_tensor(getattr(self, each.name), device) for each in fields(Steps)})

    def games(self, games: np.ndarray | None = None, device: torch.device | str = "cpu") -> Minibatch:
        """Some games or segments [b], all by default, as tensors, with no other texts than theirs; see `place`."""
        games = np.arange(self.num_games * self.segments) if games is None else games
        (steps, game), (rows, _), (t, b) = self.place(games), self.place(games, 1), self.truncations.where
        part, t_of_part = np.divmod(t, len(self.action) // self.segments)
        at = b + part * self.num_games
        place = np.full(self.num_games * self.segments, -1)
        place[games] = np.arange(len(games))
        final = np.flatnonzero(place[at] >= 0)
        inputs, last = self._inputs(rows, games, self.memory, final, device)
        truncated = None
        if len(final):
            truncated = Batch(
                {name: to_tensor(array[final][None], device) for name, array in self.truncations.observation.items()},
                last,
                None,
                torch.zeros(1, len(final), dtype=torch.bool, device=device),
                to_tensor(self.action[t[final], b[final]][None], device),
            )
        return Minibatch(
            **{each.name: to_tensor(getattr(self, each.name)[steps, game], device) for each in fields(Steps)},
            index=to_tensor(games, device),
            inputs=inputs,
            truncated=truncated,
            truncated_at=(to_tensor(t_of_part[final], device), to_tensor(place[at[final]], device)),
            extras={name: to_tensor(array[rows, game], device) for name, array in self.extras.items()},
            carried=self.carried,
        )

    def boundary(self, device: torch.device | str = "cpu") -> Batch:
        """The boundary step of all games as the policy takes it, texts not encoded yet."""
        return self._inputs(slice(-1, None), np.arange(self.num_games), self.last_memory, _NONE, device)[0]

    def _inputs(
        self, rows: slice | np.ndarray, games: np.ndarray, memory: Tensor | None, final: np.ndarray, device: Any
    ) -> tuple[Batch, dict[str, Reading]]:
        """Steps [T, b] of segments [b] as the policy takes them, and the texts of some truncated episodes [F]."""

        def tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
            return {name: to_tensor(array[rows, game], device) for name, array in arrays.items()}

        texts, last, game = {}, {}, games % self.num_games
        for name, each in self.texts.items():
            index, ends = each.index[rows, game], self.truncations.texts[name][final][None]
            used, local = np.unique(np.concatenate((index.ravel(), ends.ravel())), return_inverse=True)
            ids = {field: to_tensor(array[used], device) for field, array in each.ids.items()}
            texts[name] = Reading({}, to_tensor(local[: index.size].reshape(index.shape), device), ids)
            last[name] = replace(texts[name], index=to_tensor(local[index.size :].reshape(ends.shape), device))
        batch = Batch(
            tensors(self.observation),
            texts,
            None if memory is None else memory[to_tensor(games, device)],
            to_tensor(self.restarts[rows, game], device),
            to_tensor(self.last_action[rows, game], device),
            tensors(self.record),
        )
        return batch, last


_NONE = np.zeros(0, np.int64)


def to_tensor(array: np.ndarray, device: torch.device | str) -> Tensor:
    """An array on a device; on the CPU it is the same memory."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def side_by_side(trajectories: Sequence[Trajectory]) -> Trajectory:
    """Trajectories of n agents in the same B games as one of n · B games, for a network that plays for all of them."""

    def beside(name: str) -> Any:
        return np.concatenate([getattr(each, name) for each in trajectories], 1)

    def by_name(parts: Sequence[Mapping[str, np.ndarray]], axis: int = 1) -> dict[str, np.ndarray]:
        return {name: np.concatenate([part[name] for part in parts], axis) for name in parts[0]}

    def memories(parts: Sequence[Tensor | None], segments: int = 1) -> Tensor | None:
        known = [part.unflatten(0, (segments, -1)) for part in parts if part is not None]
        return torch.cat(known, 1).flatten(0, 1) if known else None

    first, truncations = trajectories[0], [each.truncations for each in trajectories]
    extras = by_name([each.extras for each in trajectories])
    texts, last = {}, {}
    for name in first.texts:
        parts = [each.texts[name] for each in trajectories]
        starts = np.zeros(len(parts), np.int64)  # agents that read the same texts share them
        ids = parts[0].ids
        if any(part.ids is not ids for part in parts):  # the others' are put behind one another
            starts = np.cumsum([0, *(len(next(iter(part.ids.values()))) for part in parts[:-1])])
            ids = by_name([part.ids for part in parts], 0)
        texts[name] = Texts(ids, np.concatenate([part.index + at for part, at in zip(parts, starts, strict=True)], 1))
        last[name] = np.concatenate([each.texts[name] + at for each, at in zip(truncations, starts, strict=True)])
    where = (
        np.concatenate([each.where[0] for each in truncations]),
        np.concatenate([each.where[1] + i * first.num_games for i, each in enumerate(truncations)]),
    )
    return Trajectory(
        observation=by_name([each.observation for each in trajectories]),
        texts=texts,
        truncations=Truncations(where, by_name([each.observation for each in truncations], 0), last),
        **{name: beside(name) for name in ("restarts", "last_action", *(each.name for each in fields(Steps)))},
        memory=memories([each.memory for each in trajectories], first.segments),
        last_memory=memories([each.last_memory for each in trajectories]),
        record=by_name([each.record for each in trajectories]),
        extras=extras | {STATE: first.extras[STATE]} if STATE in extras else extras,
        metrics={name: float(np.mean([each.metrics[name] for each in trajectories])) for name in first.metrics},
        segments=first.segments,
    )


class Returns(NamedTuple):
    """target [T, B] for the value function, advantage [T, B] for the policy; neither carries a gradient."""

    target: Tensor
    advantage: Tensor


@torch.no_grad()
def gae(
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    next_value: Tensor,
    nonterminal: Tensor,
    alive: Tensor,
    *,
    gae_lambda: float = 0.95,
) -> Returns:
    """Estimate advantages and targets of an unroll (generalised advantage estimation, Schulman et al. 2016, eq. 16).

    Args:
        reward: [T, B].
        discount: [T, B] factor on `next_value`: gamma, or 0 where nothing follows.
        value: [T, B] values of the learner.
        next_value: [T, B] value of the next observation, or of the true last one of a truncated episode.
        nonterminal: [T, B] bool, the next step belongs to the same episode; where false the recursion starts anew.
        alive: [T, B] bool; where false nothing is learnt: the target is `value`, the advantage 0.
        gae_lambda: weight with which a later error is passed back.
    """
    delta = torch.where(alive, reward + discount * next_value - value, 0.0)
    passed_back = torch.where(nonterminal & alive, discount * gae_lambda, 0.0)
    advantage = torch.empty_like(value)
    carry = torch.zeros_like(value[0])
    for t in reversed(range(len(value))):
        carry = delta[t] + passed_back[t] * carry
        advantage[t] = carry
    return Returns(value + advantage, advantage)
