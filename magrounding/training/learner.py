"""Learner: one agent's network, optimiser and schedule, and how it replays its column of a rollout.

A learner is handed its own column: other agents' observations and actions never reach it. What does reach it beyond its
own experience is declared: shared parameters, a part of the team's reward, and the needs of algorithm and network.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.policy import CONTRAST, Auxiliary, Batch, Policy, Reading
from magrounding.threads import GAMES_PER_PART, active_plan, map_parts
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.experience import Column
from magrounding.training.returns import following_values

Config = TypeVar("Config", bound=AlgorithmConfig)

LossOf = Callable[[], tuple[Tensor, dict[str, Tensor]]]
"""Computes a loss, and what the log is to say of it."""

_ALLOCATING = Lock()
"""Parts of a column are replayed side by side, and the first of them makes room for the memory of all."""


class Replay(NamedTuple):
    """A column as the network sees it now, b games of it.

    Attributes:
        logits: [T, b, A] float32.
        value: [T, b] float32.
        next_value: [T, b], without gradient: of the next observation, or of the true last one of an episode cut off.
        auxiliary: what else the network learns, [T, b] each or scalars.
    """

    logits: Tensor
    value: Tensor
    next_value: Tensor
    auxiliary: Auxiliary = Auxiliary()


class Learner(ABC, Generic[Config]):
    """One agent's network and what trains it.

    Args:
        policy: the network, on its device.
        config: options.

    Attributes:
        optimizer: set by the subclass; the rate is set through it, and checkpoints keep its state.
        weights: of the losses of `Policy.losses`.
        memory: [B, …] that the network had before the boundary step of the last update, where it remembers.
    """

    optimizer: torch.optim.Optimizer

    def __init__(self, policy: Policy, config: Config) -> None:
        self.policy = policy
        self.config = config
        self.device = next(policy.parameters()).device
        self.weights = {**policy.loss_weights, **config.weights}
        self.memory: Tensor | None = None
        self._wanted = frozenset(name for name, weight in self.weights.items() if weight)

    @property
    def module(self) -> nn.Module:
        """Everything with weights that a run has to keep."""
        return self.policy

    def policy_of(self, agent: int) -> Policy:
        """The network that plays for an agent."""
        return self.policy

    def explore(self, steps: int) -> None:
        """Before a rollout: make the policy explore as is due after so many environment steps of the schedule."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """What else than weights and optimiser decides how it goes on, as arrays for `restore`."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""

    def drop_open_episodes(self) -> None:
        """After `restore`, where games begin anew: leave out what is kept of episodes that will never end."""

    @abstractmethod
    def update(self, column: Column, steps: int) -> dict[str, float]:
        """Learn from one agent's column of a rollout.

        Args:
            column: this agent's experience.
            steps: environment steps of the schedule before this rollout.

        Returns:
            losses, gradient norm, mean entropy of a step in nats and the rate, for the log.
        """

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next gradient steps."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def parts_of(self, games: np.ndarray) -> list[np.ndarray]:
        """Games [b] divided among the threads of this learner."""
        parts = min(active_plan().parts, len(games) // GAMES_PER_PART) if self.policy.divisible else 1
        return np.array_split(games, max(1, parts))

    def differentiate(self, losses: Sequence[LossOf]) -> list[dict[str, Tensor]]:
        """Set every parameter's gradient to that of the sum of some losses, which are computed side by side.

        Returns:
            What the log is to say of each loss.
        """
        self.optimizer.zero_grad(set_to_none=True)
        if len(losses) == 1:
            loss, log = losses[0]()
            loss.backward()
            return [{name: each.detach() for name, each in log.items()}]
        parameters = [each for group in self.optimizer.param_groups for each in group["params"]]
        learning = [each for each in parameters if each.requires_grad]

        def gradients_of(loss_of: LossOf) -> tuple[tuple[Tensor | None, ...], dict[str, Tensor]]:
            loss, log = loss_of()
            if not loss.requires_grad:  # as the contrast of a single game
                return (None,) * len(learning), log
            return torch.autograd.grad(loss, learning, allow_unused=True), log

        logs = []
        for gradients, log in map_parts(gradients_of, losses):
            logs.append({name: each.detach() for name, each in log.items()})
            for parameter, gradient in zip(learning, gradients, strict=True):
                if gradient is None:
                    continue
                if parameter.grad is None:  # a copy, as two may have been given one and the same tensor
                    parameter.grad = torch.empty_like(parameter).copy_(gradient)
                else:
                    parameter.grad.add_(gradient)
        return logs

    def replay(self, column: Column, games: np.ndarray) -> Replay:
        """Run the network over some games [b] of a column, gradients included."""
        times, rows, final = _cuts(column, games)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            batch, last_index = self._batch(column, games, final)
            output = self.policy(batch)
            extras = {name: self.tensor(array[:, games]) for name, array in column.extras.items()}
            auxiliary = self.policy.losses(batch, output, extras, self._wanted)
            final_values = output.value[0, :0]
            if len(times):
                final_values = self._final_values(column, batch, output.memory, last_index, (times, rows, final))
        if output.memory is not None and len(output.memory) > 1:
            self._keep_memory(output.memory[-2].detach(), games, column.action.shape[1])
        logits, values, final_values = output.logits.float(), output.value.float(), final_values.float()
        next_value = following_values(values[:-1].detach(), values[-1].detach())
        if len(times):
            next_value[self.tensor(times), self.tensor(rows)] = final_values.detach()
        return Replay(logits[:-1], values[:-1], next_value, _without_boundary(auxiliary))

    def auxiliary(self, now: Replay, alive: Tensor) -> dict[str, Tensor]:
        """What else the network learns, as means over living steps; nothing, for a network that learns nothing else.

        Args:
            now: a replay of some games [b].
            alive: [T, b] bool.

        Returns:
            "auxiliary_loss", the weighted sum to descend, and for the log each loss and every metric.
        """
        losses, metrics = now.auxiliary
        parts: dict[str, Tensor] = {}
        if losses or metrics:
            parts["auxiliary_loss"] = alive.new_zeros((), dtype=torch.float32)
        for name, loss in losses.items():
            mean = loss if loss.dim() == 0 else torch.where(alive, loss, 0.0).sum() / alive.sum().clamp(min=1)
            parts[f"{name}_loss"] = mean
            parts["auxiliary_loss"] = parts["auxiliary_loss"] + self.weights.get(name, 1.0) * mean
        for name, metric in metrics.items():
            known = alive & ~metric.isnan()
            parts[name] = torch.where(known, metric, 0.0).sum() / known.sum().clamp(min=1)
        return parts

    @property
    def contrasts(self) -> bool:
        """Whether it descends a contrastive loss."""
        return CONTRAST in self._wanted and self.policy.contrasts

    def contrast(self, column: Column, games: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted contrastive loss of a minibatch of games [b], which no part of it can tell, and its log."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            batch, _ = self._batch(column, games, np.zeros(0, np.int64), encode=False)
            loss = self.policy.contrast_games(batch)
        weighted = self.weights[CONTRAST] * loss
        return weighted, {f"{CONTRAST}_loss": loss, "auxiliary_loss": weighted}

    @torch.no_grad()
    def recall(self, column: Column) -> Replay:
        """A column as the network saw it while it acted, for a learner whose weights have not changed since.

        Only what it never looked at is looked at now: the boundary observation. True last observations of episodes cut
        off need the memory of a network that remembers: those columns are replayed.
        """
        games = np.arange(column.action.shape[1])
        if len(column.cut[0]):
            return self.replay(column, games)
        boundary = replace(
            column,
            observation={name: array[-1:] for name, array in column.observation.items()},
            texts={name: replace(text, index=text.index[-1:]) for name, text in column.texts.items()},
            memory=column.last_memory,
            restarts=column.restarts[-1:],
            last_action=column.last_action[-1:],
            record={name: array[-1:] for name, array in column.record.items()},
        )
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.bf16):
            batch, _ = self._batch(boundary, games, np.zeros(0, np.int64))
            bootstrap = self.policy(batch).value[0].float()
        value = self.tensor(column.value)
        return Replay(self.tensor(column.logits), value, following_values(value, bootstrap))

    def _batch(
        self, column: Column, games: np.ndarray, final: np.ndarray, *, encode: bool = True
    ) -> tuple[Batch, dict[str, Tensor]]:
        """Some games [b] of a column as the network is given them, and the texts of some final observations [F]."""
        readings, last = {}, {}
        for name, text in column.texts.items():
            used = text.used(games, final)
            ids = {field: self.tensor(array) for field, array in used.ids.items()}
            encoding = self.policy.encode(name, ids) if encode else {}
            readings[name] = Reading(encoding, self.tensor(used.index), ids)
            last[name] = self.tensor(used.final)
        batch = Batch(
            {name: self.tensor(array[:, games]) for name, array in column.observation.items()},
            readings,
            None if column.memory is None else column.memory[self.tensor(games)],
            self.tensor(column.restarts[:, games]),
            self.tensor(column.last_action[:, games]),
            {name: self.tensor(array[:, games]) for name, array in column.record.items()},
        )
        return batch, last

    def _keep_memory(self, memory: Tensor, games: np.ndarray, num_envs: int) -> None:
        with _ALLOCATING:
            if self.memory is None or len(self.memory) != num_envs:
                self.memory = memory.new_zeros(num_envs, *memory.shape[1:])
        self.memory[self.tensor(games)] = memory

    @torch.no_grad()
    def _final_values(
        self,
        column: Column,
        batch: Batch,
        memories: Tensor | None,
        texts: dict[str, Tensor],
        cuts: tuple[np.ndarray, np.ndarray, np.ndarray],
    ) -> Tensor:
        """Values [F] of the true last observations of episodes cut off.

        A network that remembers looks back from there with the memory of the step it followed.
        """
        times, rows, final = cuts
        t, b = self.tensor(times), self.tensor(rows)
        action = self.tensor(column.action)[t, self.tensor(column.cut[1][final])]
        last = Batch(
            {name: self.tensor(array[final]).unsqueeze(0) for name, array in column.final.items()},
            {name: replace(each, index=texts[name].unsqueeze(0)) for name, each in batch.texts.items()},
            None if memories is None else memories[t, b],
            torch.zeros(1, len(times), dtype=torch.bool, device=self.device),
            action.unsqueeze(0),
        )
        return self.policy(last).value[0]

    def tensor(self, array: np.ndarray) -> Tensor:
        """An array on the learner's device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def _without_boundary(auxiliary: Auxiliary) -> Auxiliary:
    """Losses and metrics of T steps, from those of T steps and of the boundary step."""
    losses = {name: loss if loss.dim() == 0 else loss[:-1] for name, loss in auxiliary.losses.items()}
    return Auxiliary(losses, {name: metric[:-1].detach() for name, metric in auxiliary.metrics.items()})


def _cuts(column: Column, games: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, b, f) of the time-outs to bootstrap from: b counted among these games, f among the column's final rows."""
    times, rows = column.cut
    place = np.full(column.action.shape[1], -1)
    place[games] = np.arange(len(games))
    mine = np.flatnonzero(place[rows] >= 0)
    return times[mine], place[rows[mine]], mine
