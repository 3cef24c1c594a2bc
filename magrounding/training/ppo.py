"""An independent PPO learner (Schulman et al. 2017), one for each agent, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.training.learner import Learner, cosine_rate
from magrounding.training.returns import gae
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class PPOConfig:
    """Options of the learner; the defaults learn RTFM in minutes with `relread`.

    Attributes:
        algorithm: its name in config files.
        unroll: T, steps between two updates.
        epochs: passes over an unroll.
        minibatches: gradient steps of a pass; each takes whole games, so every document is encoded once a pass.
        learning_rate: of Adam, at its height.
        warm_up: environment steps over which the rate rises from 0.
        anneal_steps: environment steps over which it then falls, as a cosine, to `final_rate` of its height.
        final_rate: what part of the rate is left in the end.
        schedule: "stage": the rate starts anew with every stage; "run": one schedule for the whole curriculum.
        epsilon: of Adam.
        gamma: discount of a step.
        decay: lambda of generalised advantage estimation.
        clip: bound on how far the ratio of probabilities may leave 1.
        entropy: weight of the entropy bonus, at the start; it falls linearly over warm-up and annealing.
        final_entropy: and in the end.
        baseline: weight of the squared error of the value.
        clip_gradient: norm of a step's gradient.
        bf16: compute networks in bfloat16 (losses and weights stay float32).
    """

    algorithm: Literal["ppo"] = "ppo"
    unroll: int = 16
    epochs: int = 3
    minibatches: int = 4
    learning_rate: float = 7e-4
    warm_up: float = 20_000
    anneal_steps: float = 1e6
    final_rate: float = 0.05
    schedule: str = "stage"
    epsilon: float = 1e-5
    gamma: float = 0.98
    decay: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    final_entropy: float = 0.001
    baseline: float = 0.5
    clip_gradient: float = 1.0
    bf16: bool = False


class Losses(NamedTuple):
    """Means over the living steps of a minibatch."""

    policy: Tensor
    baseline: Tensor
    entropy: Tensor


class PPOLearner(Learner):
    """PPO with Adam.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: PPOConfig) -> None:
        super().__init__(policy, bf16=config.bf16)
        self.config = config
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=config.learning_rate, eps=config.epsilon)

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule."""
        c = self.config
        return cosine_rate(steps, c.learning_rate, c.warm_up, c.anneal_steps, c.final_rate)

    def bonus(self, steps: int) -> float:
        """Weight of the entropy after so many environment steps of the schedule."""
        c = self.config
        part = min(1.0, steps / (c.warm_up + c.anneal_steps))
        return c.entropy + (c.final_entropy - c.entropy) * part

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Take `epochs` × `minibatches` gradient steps on one agent's column; see `Learner.update`."""
        c, rate = self.config, self.rate(steps)
        self.set_rate(rate)
        batch = column.action.shape[1]
        target, advantage, log_mu = self._prepare(documents, column)
        order = np.random.default_rng(steps)  # a function of the step alone: a resumed run draws the same
        totals, norms = torch.zeros(3), 0.0
        for _ in range(c.epochs):
            for games in np.array_split(order.permutation(batch), min(c.minibatches, batch)):
                losses = self._losses(documents, column, games, target, advantage, log_mu)
                self.optimizer.zero_grad(set_to_none=True)
                (losses.policy + c.baseline * losses.baseline - self.bonus(steps) * losses.entropy).backward()
                norms += float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), c.clip_gradient))
                self.optimizer.step()
                totals += torch.stack([part.detach() for part in losses]).cpu()
        count = c.epochs * min(c.minibatches, batch)
        policy, baseline, entropy = (totals / count).tolist()
        return {
            "policy_loss": policy,
            "baseline_loss": baseline,
            "entropy": entropy,
            "gradient_norm": norms / count,
            "learning_rate": float(rate),
        }

    @torch.no_grad()
    def _prepare(self, documents: Documents, column: Column) -> tuple[Tensor, Tensor, Tensor]:
        """Targets, normalised advantages and log probabilities of the behaviour's actions, [T, B] each."""
        now = self.replay(documents, column, np.arange(column.action.shape[1]))
        alive = self._tensor(column.alive)
        returns = gae(
            self._tensor(column.reward),
            self._tensor(column.worth) * self.config.gamma,
            now.value,
            now.next_value,
            self._tensor(column.continues),
            alive,
            decay=self.config.decay,
        )
        lived = returns.advantage[alive]
        advantage = (returns.advantage - lived.mean()) / (lived.std() + 1e-8) if len(lived) > 1 else returns.advantage
        return returns.target, advantage, self._log_probability(self._tensor(column.logits), column.action)

    def _losses(
        self,
        documents: Documents,
        column: Column,
        games: np.ndarray,
        target: Tensor,
        advantage: Tensor,
        log_mu: Tensor,
    ) -> Losses:
        """Loss terms of a minibatch of games [b]; the other tensors are [T, B]."""
        now = self.replay(documents, column, games)
        mine = self._tensor(games)
        alive = self._tensor(column.alive[:, games])
        count = alive.sum().clamp(min=1)
        ratio = (self._log_probability(now.logits, column.action[:, games]) - log_mu[:, mine]).exp()
        gain = advantage[:, mine]
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - self.config.clip, 1 + self.config.clip) * gain)
        log_pi = now.logits.log_softmax(-1)
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        return Losses(
            policy=-torch.where(alive, surrogate, 0.0).sum() / count,
            baseline=torch.where(alive, target[:, mine] - now.value, 0.0).square().sum() / count,
            entropy=torch.where(alive, entropy, 0.0).sum() / count,
        )

    def _log_probability(self, logits: Tensor, action: np.ndarray) -> Tensor:
        """[T, b] of actions [T, b] under logits [T, b, A]."""
        return logits.log_softmax(-1).gather(-1, self._tensor(action)[..., None]).squeeze(-1)
