"""An independent PPO learner (Schulman et al. 2017), one for each agent, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from magrounding.schema import NonNegative
from magrounding.training.algorithm import end_of_fall, falling
from magrounding.training.experience import Column
from magrounding.training.minibatch import MinibatchConfig, MinibatchLearner
from magrounding.training.returns import normalised_returns

if TYPE_CHECKING:
    from magrounding.agents.policy import Policy
    from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class PPOConfig(MinibatchConfig):
    """Options of the learner, beside those of `MinibatchConfig`; the defaults learn RTFM in minutes with `relread`.

    Attributes:
        clip: bound on how far the ratio of probabilities may leave 1.
        entropy: weight of the entropy bonus, at the start; it changes linearly over warm-up and annealing.
        final_entropy: and in the end; None: .001, or `entropy` where that is less.
        clip_values: bound also how far a value may leave what it was, by the same number.
        normalise_advantages: to mean 0 and deviation 1 over a rollout.
        normalised_returns: the flavour of MESSENGER's program: values learn the normalised returns of a rollout, and
            advantages are their excess over the values (`returns.normalised_returns`). `gae_lambda`, `reward_scale` and
            `normalise_advantages` count for nothing then.
    """

    algorithm: ClassVar[str] = "ppo"

    learning_rate: NonNegative = 7e-4
    warm_up: NonNegative = 20_000
    clip: NonNegative = 0.2
    final_entropy: NonNegative | None = None
    clip_values: bool = False
    normalise_advantages: bool = True
    normalised_returns: bool = False

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> PPOLearner:
        return PPOLearner(policy, self)


class PPOLearner(MinibatchLearner[PPOConfig]):
    """Proximal policy optimisation (Schulman et al. 2017)."""

    def bonus(self, steps: int) -> float:
        """Weight of the entropy after so many environment steps of the schedule."""
        c = self.config
        last = end_of_fall(c.entropy, c.final_entropy, usual=0.001)
        return falling(c.entropy, last, c.warm_up + c.anneal_steps, steps)

    def update(self, column: Column, steps: int) -> dict[str, float]:
        """Learn from one agent's column; see `Learner.update`."""
        target, advantage, log_mu = self._prepare(column)

        def losses(games: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
            parts = self._losses(column, games, target, advantage, log_mu)
            policy, value, entropy = parts["policy_loss"], parts["value_loss"], parts["entropy"]
            loss = policy + self.config.value_coefficient * value - self.bonus(steps) * entropy
            return loss + parts.get("auxiliary_loss", 0.0), parts

        return self.descend(column, steps, losses)

    @torch.no_grad()
    def _prepare(self, column: Column) -> tuple[Tensor, Tensor, Tensor]:
        """Targets, normalised advantages and log probabilities of the behaviour's actions, [T, B] each."""
        log_mu = self._log_probability(self.tensor(column.logits), column.action)
        alive, now = self.tensor(column.alive), self.recall(column)
        if self.config.normalised_returns:
            reward, continues = self.tensor(column.reward), self.tensor(column.continues)
            target, advantage = normalised_returns(reward, self.config.gamma, now.value, continues, alive)
            return target, advantage, log_mu
        returns = self.returns(column, np.arange(column.action.shape[1]), now)
        lived = returns.advantage[alive]
        if not self.config.normalise_advantages:
            return returns.target, returns.advantage, log_mu
        advantage = (returns.advantage - lived.mean()) / (lived.std() + 1e-8) if len(lived) > 1 else returns.advantage
        return returns.target, advantage, log_mu

    def _losses(
        self,
        column: Column,
        games: np.ndarray,
        target: Tensor,
        advantage: Tensor,
        log_mu: Tensor,
    ) -> dict[str, Tensor]:
        """Loss terms of a minibatch of games [b], means over living steps; the other tensors are [T, B]."""
        now = self.replay(column, games)
        mine = self.tensor(games)
        alive = self.tensor(column.alive[:, games])
        count = alive.sum().clamp(min=1)
        ratio = (self._log_probability(now.logits, column.action[:, games]) - log_mu[:, mine]).exp()
        gain = advantage[:, mine]
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - self.config.clip, 1 + self.config.clip) * gain)
        log_pi = now.logits.log_softmax(-1)
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        goal, value = target[:, mine], now.value
        error = torch.where(alive, goal - value, 0.0).square()
        if self.config.clip_values:
            before = self.tensor(column.value[:, games])
            bounded = before + (value - before).clamp(-self.config.clip, self.config.clip)
            error = torch.maximum(error, torch.where(alive, goal - bounded, 0.0).square())
        return {
            "policy_loss": -torch.where(alive, surrogate, 0.0).sum() / count,
            "value_loss": error.sum() / count,
            "entropy": torch.where(alive, entropy, 0.0).sum() / count,
            **self.auxiliary(now, alive),
        }

    def _log_probability(self, logits: Tensor, action: np.ndarray) -> Tensor:
        """[T, b] of actions [T, b] under logits [T, b, A]."""
        return logits.log_softmax(-1).gather(-1, self.tensor(action)[..., None]).squeeze(-1)
