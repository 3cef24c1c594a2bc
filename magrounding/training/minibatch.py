"""What learners share that go over a rollout several times: Adam, minibatches of whole games, the rate's schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.errors import choose
from magrounding.training.learner import Learner, Replay, check_learning
from magrounding.training.returns import Returns, gae
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class MinibatchConfig:
    """Options of a learner that goes over a rollout several times.

    The optimiser is Adam (Kingma and Ba 2015); values learn by generalised advantage estimation (Schulman et al. 2016).

    Attributes:
        unroll: T, steps between two updates.
        epochs: passes over an unroll.
        minibatches: gradient steps of a pass; each takes whole games, so every document is encoded once a pass.
        learning_rate: of Adam, at its height.
        warm_up: environment steps over which the rate rises from 0.
        anneal_steps: environment steps over which it then falls, as a cosine, to `final_rate` of its height.
        final_rate: what part of the rate is left in the end.
        schedule: "stage": rate and all else that depends on steps start anew with every phase; "run": one schedule for
            the whole curriculum.
        epsilon: of Adam.
        gamma: discount of a step.
        decay: lambda of generalised advantage estimation.
        entropy: weight of the entropy bonus.
        baseline: weight of the squared error of the value.
        contrast: weight of the network's contrastive loss (`Policy.contrast`); 0: none.
        modelling: weight of the loss by which a network foresees what others do (EnDi's λ_sup) or how things move.
        division: weight of the loss by which a network divides entities among agents (EnDi's λ_reg).
        weight_decay: of every weight in a step, as a share of the rate (Loshchilov and Hutter 2019).
        clip_gradient: norm of a step's gradient; 0: any.
        bf16: compute networks in bfloat16 (losses and weights stay float32).
    """

    unroll: int = 16
    epochs: int = 3
    minibatches: int = 4
    learning_rate: float = 1e-3
    warm_up: float = 5_000
    anneal_steps: float = 1e6
    final_rate: float = 0.05
    schedule: str = "stage"
    epsilon: float = 1e-5
    gamma: float = 0.98
    decay: float = 0.95
    entropy: float = 0.01
    baseline: float = 0.5
    contrast: float = 0.0
    modelling: float = 1.0
    division: float = 1.0
    weight_decay: float = 0.0
    clip_gradient: float = 1.0
    bf16: bool = False

    def __post_init__(self) -> None:
        choose("schedule", self.schedule, ("stage", "run"))
        check_learning(self)


Config = TypeVar("Config", bound=MinibatchConfig)


class MinibatchLearner(Learner, Generic[Config]):
    """A learner with Adam that goes over a rollout several times.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: Config) -> None:
        super().__init__(policy, bf16=config.bf16, modelling=config.modelling, division=config.division)
        self.config = config
        self.optimizer = torch.optim.AdamW(
            policy.parameters(),
            lr=config.learning_rate,
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
        self,
        documents: Documents,
        column: Column,
        steps: int,
        losses: Callable[[np.ndarray], tuple[Tensor, dict[str, Tensor]]],
    ) -> dict[str, float]:
        """Take `epochs` × `minibatches` gradient steps.

        Args:
            documents, column: what is learnt from.
            steps: environment steps of the schedule before this rollout.
            losses: of some games [b]: what to descend, and its parts by name.

        Returns:
            The parts' means, the gradient norm and the rate, for the log.
        """
        c, rate, batch = self.config, self.rate(steps), column.action.shape[1]
        self.set_rate(rate)
        order = np.random.default_rng(steps)  # a function of the step alone: a resumed run draws the same
        totals: dict[str, Tensor] = {}
        for _ in range(c.epochs):
            for games in np.array_split(order.permutation(batch), min(c.minibatches, batch)):
                loss, parts = losses(games)
                if c.contrast:
                    parts["contrastive_loss"] = contrast = self.contrast(documents, column, games)
                    loss = loss + c.contrast * contrast
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), c.clip_gradient or math.inf)
                self.optimizer.step()
                for name, part in {**parts, "gradient_norm": norm}.items():
                    totals[name] = totals.get(name, 0.0) + part.detach()
        means = torch.stack(list(totals.values())).cpu() / (c.epochs * min(c.minibatches, batch))
        return {**dict(zip(totals, means.tolist(), strict=True)), "learning_rate": float(rate)}

    def contrast(self, documents: Documents, column: Column, games: np.ndarray) -> Tensor:
        """The network's contrastive loss, of some games [b]: the first board and the text of each of their episodes."""
        used, first = np.unique(documents.index[:, games], return_index=True)
        boards = {
            name: self._tensor(array[:, games].reshape(-1, *array.shape[2:])[first])
            for name, array in column.observation.items()
        }
        text = self.policy.encode_text(self._tensor(documents.manual[used]), self._tensor(documents.goal[used]))
        return self.policy.contrast(boards, text)

    def returns(self, column: Column, games: np.ndarray, now: Replay) -> Returns:
        """Targets and advantages [T, b] of some games [b] of a column, by generalised advantage estimation."""
        return gae(
            self._tensor(column.reward[:, games]),
            self._tensor(column.worth[:, games]) * self.config.gamma,
            now.value.detach(),
            now.next_value,
            self._tensor(column.continues[:, games]),
            self._tensor(column.alive[:, games]),
            decay=self.config.decay,
        )
