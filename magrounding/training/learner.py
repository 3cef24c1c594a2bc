"""Learner: one agent's network, optimiser and schedule; and the part of learners that go over a rollout several times.

A learner gets its own trajectory alone; shared parameters, a share of the team's reward and other needs are declared.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.agents.own_defaults import bfloat16, own_defaults
from magrounding.agents.policy import CONTRAST, Auxiliary, Batch, Policy, Reading, evaluating
from magrounding.agents.transfer import as_floats, upload
from magrounding.schema import Count, NonNegative, Share
from magrounding.threads import GAMES_PER_PART, active_plan, map_parts
from magrounding.training.algorithm import AlgorithmConfig, AtLeastOne
from magrounding.training.gradient_step import gradient_step
from magrounding.training.trajectory import Minibatch, Returns, SentTrajectory, Steps, Trajectory, gae

Config = TypeVar("Config", bound=AlgorithmConfig)
Loss = tuple[Tensor, dict[str, Tensor]]
"""A loss, and quantities of it for the log, by name."""


class Reevaluation(NamedTuple):
    """Outputs of the network for some games [b] of a trajectory, with its present weights.

    Attributes:
        logits: [T, b, A] float32.
        value: [T, b] float32.
        next_value: [T, b], without gradient: of the next observation, or of the true last one of a truncated episode.
        auxiliary: other losses and metrics of the network, [T, b] each or scalars.
    """

    logits: Tensor
    value: Tensor
    next_value: Tensor
    auxiliary: Auxiliary


class Learner(ABC, Generic[Config]):
    """One agent's network, on its device, and what trains it.

    Attributes:
        optimizer: set by the subclass; the rate is set through it, and checkpoints keep its state.
        weights: of the losses of `Policy.losses`.
    """

    optimizer: torch.optim.Optimizer

    def __init__(self, policy: Policy, config: Config) -> None:
        self.policy = policy
        self.config = config
        self.device = next(policy.parameters()).device
        self.weights = {**policy.loss_weights, **config.weights}
        self._weighted_losses = frozenset(name for name, weight in self.weights.items() if weight)

    @property
    def module(self) -> nn.Module:
        """Module with all weights that a run keeps."""
        return self.policy

    def policy_of(self, agent: int) -> Policy:
        """Network that plays for an agent."""
        return self.policy

    def explore(self, steps: int) -> None:
        """Set exploration for the next rollout, after so many environment steps of the schedule."""

    def takes_passes(self, games: int) -> bool:
        """Whether it learns from what acting computed (`Trajectory.passes`), in so many games."""
        return False

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return the state beside weights and optimiser, as arrays for `restore`."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Put back what `snapshot` took."""

    def drop_open_episodes(self) -> None:
        """Leave out what is kept of episodes that will never end, as games begin anew after `restore`."""

    @abstractmethod
    def update(self, trajectory: Trajectory, steps: int) -> dict[str, float]:
        """Learn from one agent's trajectory, after so many environment steps of the schedule.

        Returns:
            losses, gradient norm, mean entropy of a step in nats and the rate, for the log.
        """

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next gradient steps."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate

    def tensor(self, array: np.ndarray) -> Tensor:
        """Return an array on the learner's device; several are sent at once by `upload`."""
        return upload({"": array}, self.device)[""]

    def autocast(self) -> torch.autocast:
        """Compute networks in bfloat16 within, where the options say so."""
        return bfloat16(self.device, self.config.bf16)

    def reevaluate(self, minibatch: Minibatch) -> Reevaluation:
        """Run the network over some games of a trajectory, gradients included."""
        if minibatch.passes:
            return self._from_passes(minibatch)
        with self.autocast():
            batch = self.policy.encode_batch(minibatch.inputs)
            output = self.policy(batch)
            auxiliary = self.policy.losses(batch, output, minibatch.extras, self._weighted_losses)
            final_values = None
            if minibatch.truncated is not None:
                memory = None if output.memory is None else output.memory[minibatch.truncated_at]
                final_values = self._final_values(minibatch.truncated, batch.texts, memory)
        if minibatch.carried is not None and output.memory is not None:
            minibatch.carried[minibatch.index] = output.memory[-2].detach()
        values = output.value.float()
        next_value = values[1:].detach().clone()
        if final_values is not None:
            next_value[minibatch.truncated_at] = final_values.float()
        # The boundary step is evaluated for its value alone: the next rollout begins with it.
        losses = {name: loss if loss.dim() == 0 else loss[:-1] for name, loss in auxiliary.losses.items()}
        metrics = {name: metric[:-1].detach() for name, metric in auxiliary.metrics.items()}
        return Reevaluation(output.logits.float()[:-1], values[:-1], next_value, Auxiliary(losses, metrics))

    def _from_passes(self, minibatch: Minibatch) -> Reevaluation:
        """As `reevaluate` of all games, from what acting has computed with these very weights."""
        *passes, (_, beyond) = minibatch.passes
        with self.autocast():
            learnt = [
                self.policy.losses(
                    batch,
                    output,
                    {name: each[t : t + 1] for name, each in minibatch.extras.items()},
                    self._weighted_losses,
                )
                for t, (batch, output) in enumerate(passes)
            ]
        logits = torch.cat([output.logits for _, output in passes]).float()
        values = torch.cat([output.value for _, output in passes]).float()
        losses, metrics = (
            {name: torch.cat([each[name] for each in own]) for name in own[0]} for own in zip(*learnt, strict=True)
        )
        next_value = torch.cat((values[1:], beyond.value.float())).detach()
        return Reevaluation(logits, values, next_value, Auxiliary(losses, metrics))

    def auxiliary(self, now: Reevaluation, alive: Tensor) -> dict[str, Tensor]:
        """Return auxiliary losses and metrics of some games [b], as means over steps where `alive` [T, b] is true.

        "auxiliary_loss" is the weighted sum to minimise, the others are for the log; nothing of networks without any.
        """
        losses, metrics = now.auxiliary
        parts: dict[str, Tensor] = {}
        if losses or metrics:
            parts["auxiliary_loss"] = alive.new_zeros((), dtype=torch.float32)
        for name, loss in losses.items():
            mean = loss if loss.dim() == 0 else mean_of(loss, alive)
            parts[f"{name}_loss"] = mean
            parts["auxiliary_loss"] = parts["auxiliary_loss"] + self.weights.get(name, 1.0) * mean
        for name, metric in metrics.items():
            parts[name] = mean_of(metric, alive & ~metric.isnan())
        return parts

    @property
    def contrasts(self) -> bool:
        """A contrastive loss is minimised."""
        return CONTRAST in self._weighted_losses and self.policy.contrasts

    def contrast(self, sent: SentTrajectory, games: np.ndarray) -> Loss:
        """Compute the weighted contrastive loss of a minibatch of games [b], which no part of it has."""
        with self.autocast():
            loss = self.policy.contrast_games(sent.games(games).inputs)
        weighted = self.weights[CONTRAST] * loss
        return weighted, {f"{CONTRAST}_loss": loss, "auxiliary_loss": weighted}

    def parts_of(self, games: np.ndarray) -> list[np.ndarray]:
        """Games [b] divided among the threads of this learner."""
        parts = min(active_plan().parts, len(games) // GAMES_PER_PART) if self.policy.divisible else 1
        return np.array_split(games, max(1, parts))

    def gradient_step(self, losses: Sequence[Callable[[], Loss]]) -> list[dict[str, Tensor]]:
        """Take a gradient step on a sum of losses; return their logs, and the gradient's norm, which is clipped.

        Every step of a learner goes through here: one that is not finite is refused (`training.gradient_step`).
        """
        self.optimizer.zero_grad(set_to_none=True)
        if len(losses) == 1:
            total, log = losses[0]()
            total.backward()
            logs = [log]
        else:
            total, logs = self._gradients_of_all(losses)
        norm = gradient_step(self.optimizer, total.detach(), getattr(self.config, "clip_gradient", 0.0))
        return [*({name: each.detach() for name, each in log.items()} for log in logs), {"gradient_norm": norm}]

    def _gradients_of_all(self, losses: Sequence[Callable[[], Loss]]) -> tuple[Tensor, list[dict[str, Tensor]]]:
        """Set every parameter's gradient to that of a sum of losses, computed side by side; return it, their logs."""
        learning = [each for group in self.optimizer.param_groups for each in group["params"] if each.requires_grad]

        @own_defaults()
        def gradients_of(compute: Callable[[], Loss]) -> tuple[Sequence[Tensor | None], Tensor, dict[str, Tensor]]:
            loss, log = compute()
            if not loss.requires_grad:  # as the contrast of a single game
                return (None,) * len(learning), loss, log
            return torch.autograd.grad(loss, learning, allow_unused=True), loss.detach(), log

        total, logs = torch.zeros((), device=self.device), []
        for gradients, loss, log in map_parts(gradients_of, losses):
            total += loss
            logs.append(log)
            for parameter, gradient in zip(learning, gradients, strict=True):
                if gradient is not None and parameter.grad is not None:
                    parameter.grad.add_(gradient)
                elif gradient is not None:  # a copy, as two may have been given one and the same tensor
                    parameter.grad = torch.empty_like(parameter).copy_(gradient)
        return total, logs

    @torch.no_grad()
    def _final_values(self, last: Batch, encoded: dict[str, Reading], memory: Tensor | None) -> Tensor:
        """Values [F] of the last observations of truncated episodes, with memory [F, …] of the steps before them."""
        texts = {name: replace(each, encoding=encoded[name].encoding) for name, each in last.texts.items()}
        with evaluating(self.policy):  # so few are no batch
            return self.policy(last._replace(texts=texts, memory=memory)).value[0]


def mean_of(quantity: Tensor, where: Tensor) -> Tensor:
    """The mean of a quantity over what is true in `where`, of the same shape; 0 of nothing."""
    return torch.where(where, quantity, 0.0).sum() / where.sum().clamp(min=1)


def entropy_of(log_pi: Tensor) -> Tensor:
    """[…] of log probabilities […, A]; a masked action has probability 0 and a hugely negative logarithm: 0 as well."""
    return -(log_pi.exp() * log_pi).sum(-1)


def summed(logs: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The sum of each entry over the logs that have it."""
    totals: dict[str, Tensor] = {}
    for log in logs:
        for name, each in log.items():
            totals[name] = totals.get(name, 0.0) + each
    return totals


@dataclass(frozen=True)
class MinibatchConfig(AlgorithmConfig):
    """Options of a learner that goes over a rollout several times.

    The optimiser is Adam (Kingma and Ba 2015); values learn by generalised advantage estimation (Schulman et al. 2016).

    Attributes:
        epochs: passes over an unroll.
        minibatches: gradient steps of a pass; each takes whole games, so every document is encoded once a pass.
        learning_rate: of Adam, at its height.
        warm_up: environment steps over which the rate rises from 0.
        anneal_steps: environment steps over which it then falls, as a cosine, to `final_rate` of its height.
        final_rate: what part of the rate is left in the end.
        beta2: of Adam, how long its mean of squares remembers.
        epsilon: of Adam.
        gamma: discount of a step.
        reward_scale: factor on rewards before anything is learnt from them.
        gae_lambda: λ of generalised advantage estimation.
        entropy: weight of the entropy bonus.
        value_coefficient: weight of the squared error of the value.
        weight_decay: of every weight in a step, as a share of the rate (Loshchilov and Hutter 2019).
        clip_gradient: norm of a step's gradient; 0: no bound.
    """

    scaled: ClassVar[tuple[str, ...]] = ("anneal_steps",)

    epochs: Count = 3
    minibatches: Count = 4
    learning_rate: NonNegative = 1e-3
    warm_up: NonNegative = 5_000
    anneal_steps: AtLeastOne = 1e6
    final_rate: Share = 0.05
    beta2: Share = 0.999
    epsilon: NonNegative = 1e-5
    gamma: Share = 0.98
    reward_scale: NonNegative = 1.0
    gae_lambda: Share = 0.95
    entropy: NonNegative = 0.01
    value_coefficient: NonNegative = 0.5
    weight_decay: NonNegative = 0.0
    clip_gradient: NonNegative = 1.0


MinibatchOptions = TypeVar("MinibatchOptions", bound=MinibatchConfig)


class MinibatchLearner(Learner[MinibatchOptions]):
    """A learner with Adam that goes over a rollout several times."""

    def __init__(self, policy: Policy, config: MinibatchOptions) -> None:
        super().__init__(policy, config)
        self.optimizer = torch.optim.AdamW(
            policy.parameters(),
            lr=config.learning_rate,
            betas=(0.9, config.beta2),
            eps=config.epsilon,
            weight_decay=config.weight_decay,
            fused=True,
        )

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule: warm-up, then a cosine."""
        c = self.config
        if steps < c.warm_up:
            return c.learning_rate * (steps + 1) / c.warm_up
        part = min(1.0, (steps - c.warm_up) / c.anneal_steps)
        return c.learning_rate * (c.final_rate + (1 - c.final_rate) * 0.5 * (1 + math.cos(math.pi * part)))

    def takes_passes(self, games: int) -> bool:
        """Whether an update is one gradient step on all games at once, of a network without memory."""
        whole = self.config.epochs == self.config.minibatches == len(self.parts_of(np.arange(games))) == 1
        return whole and self.policy.initial_memory(1) is None and not self.contrasts

    def minibatches(self, trajectory: Trajectory, steps: int) -> Iterator[np.ndarray]:
        """Yield the games [b] of each minibatch of an epoch, for all epochs."""
        order = np.random.default_rng(steps)  # a function of the step alone: a resumed run draws the same
        if trajectory.passes:
            yield np.arange(trajectory.num_games)
            return
        for _ in range(self.config.epochs):
            shuffled = order.permutation(trajectory.num_games * trajectory.segments)
            yield from np.array_split(shuffled, min(self.config.minibatches, len(shuffled)))

    def minibatch_update(
        self, sent: SentTrajectory, games: np.ndarray, loss: Callable[[Minibatch], Loss]
    ) -> list[dict[str, Tensor]]:
        """Take a gradient step on games [b] of a trajectory, in parts by several threads.

        `loss` of some of them is a mean over living steps. The sum of the logs is that of the minibatch.
        """
        trajectory = sent.trajectory
        living = max(1, int(trajectory.alive[trajectory.place(games)].sum()))

        def weighted(part: np.ndarray) -> Loss:
            weight = int(trajectory.alive[trajectory.place(part)].sum()) / living
            value, log = loss(sent.games(part))
            return weight * value, {name: weight * each for name, each in log.items()}

        losses: list[Callable[[], Loss]] = [partial(weighted, part) for part in self.parts_of(games)]
        if self.contrasts:
            losses.append(partial(self.contrast, sent, games))
        return self.gradient_step(losses)

    def learn(self, sent: SentTrajectory, steps: int, loss: Callable[[Minibatch], Loss]) -> dict[str, float]:
        """Take all gradient steps on a trajectory; return means of their logs, and the rate. See `minibatch_update`."""
        rate, logs = self.rate(steps), []
        self.set_rate(rate)
        for games in self.minibatches(sent.trajectory, steps):
            logs += self.minibatch_update(sent, games, loss)
        steps_taken = sum("gradient_norm" in log for log in logs)
        means = {name: total / steps_taken for name, total in summed(logs).items()}
        return {**as_floats(means), "learning_rate": float(rate)}

    def returns(self, steps: Steps, value: Tensor, next_value: Tensor) -> Returns:
        """Compute targets and advantages [T, b] of some games, from values [T, b]; see `gae`."""
        return gae(
            steps.reward * self.config.reward_scale,
            steps.discount * self.config.gamma,
            value.detach(),
            next_value,
            steps.nonterminal,
            steps.alive,
            gae_lambda=self.config.gae_lambda,
        )
