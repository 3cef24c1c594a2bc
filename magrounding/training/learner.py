"""Learner: one agent's network, optimiser and schedule, and how it replays its column of a rollout.

A learner is handed its own column: other agents' observations and actions never reach it. What does reach it beyond its
own experience is asked for in the settings: shared parameters, a part of the team's reward, a teacher's labels; and a
network that models others is told what they did, once they did it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.policy import Auxiliary, Others, Policy
from magrounding.errors import ConfigurationError
from magrounding.training.returns import following_values
from magrounding.training.rollout import Column, Documents

_COUNTS = ("unroll", "epochs", "minibatches", "anneal_steps", "batch", "replay_steps", "target_every", "state_maps")
_SHARES = ("gamma", "decay", "trace", "alpha", "momentum", "final_rate", "final_exploration", "teacher_noise")


class Replay(NamedTuple):
    """A column as the network sees it now, b games of it.

    Attributes:
        logits: [T, b, A] float32.
        value: [T, b] float32.
        next_value: [T, b], without gradient: of the next observation, or of the true last one of an episode cut off.
        auxiliary: what else the network learns, [T, b] each, or None.
    """

    logits: Tensor
    value: Tensor
    next_value: Tensor
    auxiliary: Auxiliary | None = None


def check_learning(config: Any) -> None:
    """Raise a ConfigurationError unless counts are positive, shares in [0, 1], and all other numbers 0 or more."""
    for field in fields(config):
        value = getattr(config, field.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        least, most = int(field.name in _COUNTS), 1 if field.name in _SHARES else math.inf
        if not least <= value <= most:
            what = f"at least {least}" if most > 1 else "between 0 and 1"
            raise ConfigurationError(f"{field.name} of algorithm {config.algorithm} is {what}, not {value}")


class Learner(ABC):
    """One agent's network and what trains it.

    Args:
        policy: the network, on its device.
        bf16: compute it in bfloat16.
        modelling, division: weights of the losses in `Auxiliary`.
    """

    optimizer: torch.optim.Optimizer

    def __init__(self, policy: Policy, *, bf16: bool, modelling: float, division: float) -> None:
        self.policy = policy
        self._weights = {"modelling": modelling, "division": division}
        self.device = next(policy.parameters()).device
        self._bf16 = bf16

    @property
    def module(self) -> nn.Module:
        """Everything with weights that a run has to keep."""
        return self.policy

    def policy_of(self, agent: int) -> Policy:
        """The network that plays for an agent."""
        return self.policy

    def explore(self, steps: int) -> None:  # noqa: B027  most learners explore as they play
        """Before a rollout: make the policy explore as is due after so many environment steps of the schedule."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """What else than weights and optimiser decides how it goes on, as arrays for `restore`."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:  # noqa: B027  most learners have nothing else
        """Put back what `snapshot` took."""

    @abstractmethod
    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Learn from one agent's column of a rollout.

        Args:
            documents: the rollout's texts.
            column: this agent's experience.
            steps: environment steps of the schedule before this rollout.

        Returns:
            losses, gradient norm, mean entropy of a step in nats and the rate, for the log.
        """

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next gradient steps."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def replay(self, documents: Documents, column: Column, games: np.ndarray) -> Replay:
        """Run the network over some games [b] of a column, gradients included."""
        logits, values, final_values, auxiliary = self._unroll(documents, column, games)
        next_value = following_values(values[:-1].detach(), values[-1].detach())
        times, rows, _ = _cuts(column, games)
        if len(times):
            next_value[self._tensor(times), self._tensor(rows)] = final_values.detach()
        return Replay(logits[:-1], values[:-1], next_value, auxiliary)

    def auxiliary(self, now: Replay, alive: Tensor) -> dict[str, Tensor]:
        """What else the network learns, as means over living steps; nothing, for a network that learns nothing else.

        Args:
            now: a replay of some games [b].
            alive: [T, b] bool.

        Returns:
            "auxiliary_loss", the weighted sum to descend, and for the log each loss and whatever else is told.
        """
        if now.auxiliary is None:
            return {}
        parts = {"auxiliary_loss": alive.new_zeros((), dtype=torch.float32)}
        for name, weight in self._weights.items():
            loss = getattr(now.auxiliary, name)
            if loss is not None:
                parts[f"{name}_loss"] = mean = torch.where(alive, loss, 0.0).sum() / alive.sum().clamp(min=1)
                parts["auxiliary_loss"] = parts["auxiliary_loss"] + weight * mean
        for name, fact in now.auxiliary.facts.items():
            told = alive & ~fact.isnan()
            parts[name] = torch.where(told, fact, 0.0).sum() / told.sum().clamp(min=1)
        return parts

    @torch.no_grad()
    def recall(self, documents: Documents, column: Column) -> Replay:
        """A column as the network saw it while it acted, for a learner whose weights have not changed since.

        Only what it never looked at is looked at now: the boundary observation. After a time-out there is more of that,
        and a recurrent network would need its memory: those columns are replayed.
        """
        games = np.arange(column.action.shape[1])
        memories = self._memories(column, games)
        if len(column.cut[0]) or (column.memory is not None and memories is None):
            return self.replay(documents, column, games)
        last = replace(
            column,
            observation={name: array[-1:] for name, array in column.observation.items()},
            memory=None if memories is None else memories[-1],
            restarts=column.restarts[-1:],
            others=None,
        )
        _, bootstrap, *_ = self._unroll(replace(documents, index=documents.index[-1:]), last, games)
        value = self._tensor(column.value)
        return Replay(self._tensor(column.logits), value, following_values(value, bootstrap[0]))

    def _unroll(
        self, documents: Documents, column: Column, games: np.ndarray
    ) -> tuple[Tensor, Tensor, Tensor, Auxiliary | None]:
        """Logits [T+1, b, A] and values [T+1, b] float32, values [F] of final observations, and what is learnt beside.

        Of what is learnt beside, the boundary step is left out: [T, b].
        """
        index = documents.index[:, games]
        used, local = np.unique(index, return_inverse=True)  # the texts of these games only
        local = local.reshape(index.shape)
        observation = {name: array[:, games] for name, array in column.observation.items()}
        times, rows, cut = _cuts(column, games)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._bf16):
            text = self.policy.encode_text(self._tensor(documents.manual[used]), self._tensor(documents.goal[used]))
            flat = {name: self._tensor(array.reshape(-1, *array.shape[2:])) for name, array in observation.items()}
            read, before = self._tensor(local.reshape(-1)), self._memories(column, games)
            auxiliary = None
            if column.memory is None or before is not None:
                output = self.policy(flat, text, read, None if before is None else before.flatten(0, 1))
                auxiliary = self.policy.auxiliary(flat, text, read, output, self._others(column, games))
            else:
                first, restarts = column.memory[self._tensor(games)], self._tensor(column.restarts[:, games])
                output = self.policy.unroll(flat, text, read, first, restarts)
            logits, values = output.logits, output.value
            memories = None if output.memory is None else output.memory.unflatten(0, index.shape)
            final_values = values[:0]
            if len(times):
                last = {name: self._tensor(array[cut]) for name, array in column.final.items()}
                # Who remembers looks back from the final observation with the memory of the step it followed.
                memory = None if memories is None else memories[self._tensor(times), self._tensor(rows)]
                with torch.no_grad():
                    final_values = self.policy(last, text, self._tensor(local[times, rows]), memory).value
        shape = index.shape
        return (
            logits.float().view(*shape, -1),
            values.float().view(shape),
            final_values.float(),
            None if auxiliary is None else _by_step(auxiliary, shape),
        )

    def _others(self, column: Column, games: np.ndarray) -> Others | None:
        """What the others did, as the network is told: [(T+1) · b, n − 1]."""
        if column.others is None:
            return None
        pair = column.others.action, column.others.acted
        return Others(*(self._tensor(array[:, games]).flatten(0, 1) for array in pair))

    def _memories(self, column: Column, games: np.ndarray) -> Tensor | None:
        """[T+1, b, …] before each step of some games, of a policy that knows them without replaying the steps."""
        if column.memory is None:
            return None
        return self.policy.memories(
            column.memory[self._tensor(games)],
            {name: self._tensor(array[:, games]) for name, array in column.observation.items()},
            self._tensor(column.restarts[:, games]),
        )

    def _tensor(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _by_step(auxiliary: Auxiliary, shape: tuple[int, ...]) -> Auxiliary:
    """What is learnt beside in each of T steps of b games, from the rows of T + 1 steps; shape is (T + 1, b)."""

    def steps(rows: Tensor) -> Tensor:
        return rows.view(shape)[:-1]

    modelling, division = (None if loss is None else steps(loss) for loss in auxiliary[:2])
    return Auxiliary(modelling, division, {name: steps(fact.detach()) for name, fact in auxiliary.facts.items()})


def _cuts(column: Column, games: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, b, f) of the time-outs to bootstrap from: b counted among these games, f among the column's final rows."""
    times, rows = column.cut
    place = np.full(column.action.shape[1], -1)
    place[games] = np.arange(len(games))
    mine = np.flatnonzero(place[rows] >= 0)
    return times[mine], place[rows[mine]], mine
