"""An imitation learner: behaviour cloning of all moves that an expert holds to be equally good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.training.learner import Learner, cosine_rate
from magrounding.training.returns import gae
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class ImitationConfig:
    """Options of the learner.

    The loss is −log of the probability of the *set* of best moves: which of them the student takes is its own choice,
    so ties are no noise. The value learns the returns of the games that were played, for a learner that may follow.

    Attributes:
        algorithm: its name in config files.
        unroll: T, steps between two updates.
        epochs: passes over an unroll.
        minibatches: gradient steps of a pass.
        learning_rate: of Adam, at its height.
        warm_up: environment steps over which the rate rises from 0.
        anneal_steps: environment steps over which it then falls, as a cosine, to `final_rate` of its height.
        final_rate: what part of the rate is left in the end.
        schedule: "stage": rate and teacher start anew with every phase; "run": one schedule for the whole curriculum.
        epsilon: of Adam.
        teacher_steps: environment steps over which the share of games that the teacher leads falls from 1 to 0; the
            student plays the others, and the teacher labels all (DAgger, Ross et al. 2011). `inf`: behaviour cloning.
        teacher_noise: probability that a led agent takes any action instead.
        entropy: weight of the entropy bonus.
        gamma: discount of a step, for the value.
        decay: lambda of the value's targets.
        baseline: weight of the squared error of the value.
        clip_gradient: norm of a step's gradient.
        bf16: compute networks in bfloat16 (losses and weights stay float32).
    """

    algorithm: Literal["imitation"] = "imitation"
    unroll: int = 16
    epochs: int = 3
    minibatches: int = 4
    learning_rate: float = 1e-3
    warm_up: float = 5_000
    anneal_steps: float = 1e6
    final_rate: float = 0.05
    schedule: str = "stage"
    epsilon: float = 1e-5
    teacher_steps: float = 20_000
    teacher_noise: float = 0.1
    entropy: float = 0.01
    gamma: float = 0.98
    decay: float = 0.95
    baseline: float = 0.1
    clip_gradient: float = 1.0
    bf16: bool = False

    def teacher_share(self, steps: float) -> float:
        """Share of the games that the teacher leads after so many environment steps."""
        return max(0.0, 1.0 - steps / self.teacher_steps) if self.teacher_steps else 0.0


class ImitationLearner(Learner):
    """Behaviour cloning with Adam, on soft labels.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: ImitationConfig) -> None:
        super().__init__(policy, bf16=config.bf16)
        self.config = config
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=config.learning_rate, eps=config.epsilon)

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule."""
        c = self.config
        return cosine_rate(steps, c.learning_rate, c.warm_up, c.anneal_steps, c.final_rate)

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Take `epochs` × `minibatches` gradient steps on one agent's labelled column; see `Learner.update`."""
        if column.labels is None:
            raise TypeError("an imitation learner needs a rollout with labels: collect it with a teacher")
        c, rate = self.config, self.rate(steps)
        self.set_rate(rate)
        batch = column.action.shape[1]
        order = np.random.default_rng(steps)  # a function of the step alone: a resumed run draws the same
        totals, norms = torch.zeros(4), 0.0
        for _ in range(c.epochs):
            for games in np.array_split(order.permutation(batch), min(c.minibatches, batch)):
                loss, parts = self._losses(documents, column, games, column.labels[:, games])
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                norms += float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), c.clip_gradient))
                self.optimizer.step()
                totals += parts.cpu()
        count = c.epochs * min(c.minibatches, batch)
        imitation, baseline, entropy, agreement = (totals / count).tolist()
        return {
            "imitation_loss": imitation,
            "baseline_loss": baseline,
            "entropy": entropy,
            "agreement": agreement,
            "gradient_norm": norms / count,
            "learning_rate": float(rate),
        }

    def _losses(
        self, documents: Documents, column: Column, games: np.ndarray, labels: np.ndarray
    ) -> tuple[Tensor, Tensor]:
        """The loss of a minibatch of games [b], and its parts: imitation, value, entropy, share of best moves taken."""
        c = self.config
        now = self.replay(documents, column, games)
        alive, best = self._tensor(column.alive[:, games]), self._tensor(labels)
        count = alive.sum().clamp(min=1)

        def mean(quantity: Tensor) -> Tensor:
            return torch.where(alive, quantity, 0.0).sum() / count

        log_pi = now.logits.log_softmax(-1)
        # The minimum of the dtype stands for "no": −inf would make gradients of a state without any label nan.
        imitation = mean(-torch.where(best, log_pi, torch.finfo(log_pi.dtype).min).logsumexp(-1))
        entropy = mean(-(log_pi.exp() * log_pi).sum(-1))
        target = gae(
            self._tensor(column.reward[:, games]),
            self._tensor(column.worth[:, games]) * c.gamma,
            now.value.detach(),
            now.next_value,
            self._tensor(column.continues[:, games]),
            alive,
            decay=c.decay,
        ).target
        baseline = mean((target - now.value).square())
        agreement = mean(best.gather(-1, now.logits.argmax(-1, keepdim=True)).squeeze(-1).float())
        loss = imitation + c.baseline * baseline - c.entropy * entropy
        return loss, torch.stack((imitation, baseline, entropy, agreement)).detach()
