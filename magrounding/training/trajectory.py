"""Trajectory: T steps of B games as one agent lived through them; `games` makes tensors of some, `gae` its returns.

Every agent has arrays of its own, so a learner can be handed its trajectory and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import STATE, Batch, Pass, Reading
from magrounding.agents.transfer import upload
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
        index: [b] int64, which games, see `SentTrajectory.games`.
        inputs: T + 1 steps, the last of them the boundary; texts have ids and no encoding yet.
        truncated: one step of F truncated episodes, their true last observations, without memory; None: there are none.
        truncated_at: ([F], [F]) int64, the steps and the places among these games.
        extras: [T+1, b, …] as in `Trajectory`.
        carried: [B, …], the trajectory's own.
        passes: the trajectory's own; only all games at once have them.
    """

    __repr__ = brief

    index: Tensor
    inputs: Batch
    truncated: Batch | None
    truncated_at: tuple[Tensor, Tensor]
    extras: dict[str, Tensor]
    carried: Tensor | None
    passes: Sequence[Pass] = ()


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
        passes: T + 1, for a learner that takes all games in one gradient step: what acting has computed with the
            weights that learn from it.
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
    passes: Sequence[Pass] = ()

    @property
    def num_games(self) -> int:
        """B."""
        return self.action.shape[1]

    def place(self, games: np.ndarray, boundary: int = 0) -> tuple[slice | np.ndarray, np.ndarray]:
        """Steps [T / S (+ `boundary`), b] and games [b] of some of S · B segments, all first parts first."""
        length, (part, game) = len(self.action) // self.segments, np.divmod(games, self.num_games)
        steps = part * length + np.arange(length + boundary)[:, None]
        return slice(length + boundary) if self.segments == 1 else steps, game  # slices are copied faster

    def on(self, device: torch.device | str) -> SentTrajectory:
        """The trajectory on a device, sent there at once; on the CPU it is the same memory."""
        parts: dict[str, Mapping[str, np.ndarray]] = {
            "": {name: getattr(self, name) for name in _STEPS + _ROWS},
            "observation": self.observation,
            "record": self.record,
            "extras": self.extras,
            "final": self.truncations.observation,
            "final_texts": self.truncations.texts,
            "index": {name: each.index for name, each in self.texts.items()},
            **{f"ids of {name}": each.ids for name, each in self.texts.items()},
        }
        sent = upload({(part, name): each for part, arrays in parts.items() for name, each in arrays.items()}, device)
        return SentTrajectory(self, device, {part: {name: sent[part, name] for name in parts[part]} for part in parts})

    def games(self, games: np.ndarray | None = None, device: torch.device | str = "cpu") -> Minibatch:
        """Some games or segments [b], all by default, on a device; to take several minibatches, see `on`."""
        return self.on(device).games(games)


_STEPS, _ROWS = tuple(each.name for each in fields(Steps)), ("restarts", "last_action")
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class SentTrajectory:
    """A trajectory on a device, from which minibatches are taken there: of each, only its places are sent.

    Attributes:
        trajectory: with its arrays on the CPU.
        device: where the tensors are.
        tensors: of each part of the trajectory, by name.
    """

    __repr__ = brief

    trajectory: Trajectory
    device: torch.device | str
    tensors: dict[str, dict[str, Tensor]]

    def steps(self) -> Steps:
        """The steps of all games."""
        return Steps(**{name: self.tensors[""][name] for name in _STEPS})

    def games(self, games: np.ndarray | None = None) -> Minibatch:
        """Some games or segments [b], all by default, with no other texts than theirs; see `Trajectory.place`."""
        kept, (t, b) = self.trajectory, self.trajectory.truncations.where
        count, length = kept.num_games * kept.segments, len(kept.action) // kept.segments
        games = np.arange(count) if games is None else games
        part, t_of_part = np.divmod(t, length)
        at, place = b + part * kept.num_games, np.full(count, -1)
        place[games] = np.arange(len(games))
        final = np.flatnonzero(place[at] >= 0)
        rows, game = kept.place(games, 1)
        sent = self._send_places(
            {name: each.index[rows, game] for name, each in kept.texts.items()},
            final,
            {
                "games": games,
                "game": game,
                "first": (games // kept.num_games) * length,
                "t": t_of_part[final],
                "b": place[at[final]],
                "action": kept.action[t[final], b[final]][None],
            },
        )

        def take(tensor: Tensor, boundary: int = 1) -> Tensor:
            if kept.segments == 1:
                return tensor.index_select(1, sent["game"])
            steps = sent["first"] + torch.arange(length + boundary, device=tensor.device)[:, None]
            row = steps * kept.num_games + sent["game"]
            return tensor.flatten(0, 1).index_select(0, row.flatten()).unflatten(0, row.shape)

        inputs = self._inputs(take, sent, None if kept.memory is None else kept.memory.index_select(0, sent["games"]))
        truncated = None
        if len(final):
            truncated = Batch(
                {name: each.index_select(0, sent["final"])[None] for name, each in self.tensors["final"].items()},
                {
                    name: replace(inputs.texts[name], index=sent["places", name][each[sent["final"]]][None])
                    for name, each in self.tensors["final_texts"].items()
                },
                None,
                torch.zeros(1, len(final), dtype=torch.bool, device=self.device),
                sent["action"],
            )
        return Minibatch(
            **{name: take(self.tensors[""][name], 0) for name in _STEPS},
            index=sent["games"],
            inputs=inputs,
            truncated=truncated,
            truncated_at=(sent["t"], sent["b"]),
            extras={name: take(each) for name, each in self.tensors["extras"].items()},
            carried=kept.carried,
            passes=kept.passes,
        )

    def boundary(self) -> Batch:
        """The boundary step of all games as the policy takes it, texts not encoded yet."""
        kept = self.trajectory
        sent = self._send_places({name: each.index[-1:] for name, each in kept.texts.items()}, _NONE, {})
        return self._inputs(lambda tensor: tensor[-1:], sent, kept.last_memory)

    def _send_places(self, shown: Mapping[str, np.ndarray], final: np.ndarray, beside: Mapping[Any, np.ndarray]) -> Any:
        """Send some arrays, and which texts a minibatch has, those `shown` and the last of truncated episodes `final`.

        For each kind of texts, "used" [U] are those, and "places" is the place among them of every text.
        """
        arrays = {**beside, "final": final}
        for name, index in shown.items():
            kept = self.trajectory.texts[name]
            used = np.zeros(len(next(iter(kept.ids.values()))), np.bool_)
            used[index] = used[self.trajectory.truncations.texts[name][final]] = True
            arrays["used", name], arrays["places", name] = np.flatnonzero(used), np.cumsum(used) - 1
        return upload(arrays, self.device)

    def _inputs(self, take: Callable[[Tensor], Tensor], sent: Mapping[Any, Tensor], memory: Tensor | None) -> Batch:
        """Some steps [T, b] as the policy takes them."""
        tensors, texts = self.tensors, {}
        for name, each in tensors["index"].items():
            ids = {field: ids.index_select(0, sent["used", name]) for field, ids in tensors[f"ids of {name}"].items()}
            index = take(each)
            places = sent["places", name].index_select(0, index.flatten()).view(index.shape)
            texts[name] = Reading({}, places, ids)
        return Batch(
            {name: take(each) for name, each in tensors["observation"].items()},
            texts,
            memory,
            take(tensors[""]["restarts"]),
            take(tensors[""]["last_action"]),
            {name: take(each) for name, each in tensors["record"].items()},
        )


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
        passes=first.passes,
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
    advantage = carried_back(delta, passed_back, value)
    return Returns(value + advantage, advantage)


def carried_back(delta: Tensor, share: Tensor, like: Tensor) -> Tensor:
    """Sums [T, B], of the type of `like`: what a step is worth itself, and its share of the sum of the next step."""
    total, later = torch.empty_like(like), torch.zeros_like(like[0])
    for t in reversed(range(len(like))):
        total[t] = later = delta[t] + share[t] * later
    return total
