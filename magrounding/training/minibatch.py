"""What learners share that go over a rollout several times: Adam, minibatches of whole games, the rate's schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.schema import Count, NonNegative, Share
from magrounding.training.algorithm import AlgorithmConfig, AtLeastOne
from magrounding.training.experience import Column
from magrounding.training.learner import Learner, Replay
from magrounding.training.returns import Returns, gae


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


Config = TypeVar("Config", bound=MinibatchConfig)


class MinibatchLearner(Learner[Config]):
    """A learner with Adam that goes over a rollout several times.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: Config) -> None:
        super().__init__(policy, config)
        self._parameters = list(policy.parameters())  # listing them takes as long as several of them to be clipped
        self.optimizer = torch.optim.AdamW(
            self._parameters,
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

    def descend(
        self, column: Column, steps: int, losses: Callable[[np.ndarray], tuple[Tensor, dict[str, Tensor]]]
    ) -> dict[str, float]:
        """Take `epochs` × `minibatches` gradient steps.

        Args:
            column: what is learnt from.
            steps: environment steps of the schedule before this rollout.
            losses: of some games [b], as means over living steps: what to descend, and its parts by name.

        Returns:
            The parts' means, the gradient norm and the rate, for the log.
        """
        c, rate, batch = self.config, self.rate(steps), column.action.shape[1]
        self.set_rate(rate)
        order = np.random.default_rng(steps)  # a function of the step alone: a resumed run draws the same
        totals: dict[str, Tensor] = {}

        def weighted(part: np.ndarray, living: int) -> tuple[Tensor, dict[str, Tensor]]:
            weight = int(column.alive[:, part].sum()) / max(1, living)
            loss, log = losses(part)
            return weight * loss, {name: weight * each for name, each in log.items()}

        for _ in range(c.epochs):
            for games in np.array_split(order.permutation(batch), min(c.minibatches, batch)):
                living = int(column.alive[:, games].sum())
                parts = [partial(weighted, part, living) for part in self.parts_of(games)]
                whole = [partial(self.contrast, column, games)] if self.contrasts else []
                logs = self.differentiate(parts + whole)
                norm = torch.nn.utils.clip_grad_norm_(self._parameters, c.clip_gradient or math.inf)
                self.optimizer.step()
                for log in (*logs, {"gradient_norm": norm}):
                    for name, each in log.items():
                        totals[name] = totals.get(name, 0.0) + each
        means = torch.stack(list(totals.values())).cpu() / (c.epochs * min(c.minibatches, batch))
        return {**dict(zip(totals, means.tolist(), strict=True)), "learning_rate": float(rate)}

    def returns(self, column: Column, games: np.ndarray, now: Replay) -> Returns:
        """Targets and advantages [T, b] of some games [b] of a column, by generalised advantage estimation."""
        return gae(
            self.tensor(column.reward[:, games]) * self.config.reward_scale,
            self.tensor(column.discount[:, games]) * self.config.gamma,
            now.value.detach(),
            now.next_value,
            self.tensor(column.continues[:, games]),
            self.tensor(column.alive[:, games]),
            gae_lambda=self.config.gae_lambda,
        )
