"""An independent PPO learner (Schulman et al. 2017), one for each agent, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from magrounding.training.minibatch import MinibatchConfig, MinibatchLearner
from magrounding.training.returns import normalised_returns
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class PPOConfig(MinibatchConfig):
    """Options of the learner, beside those of `MinibatchConfig`; the defaults learn RTFM in minutes with `relread`.

    Attributes:
        algorithm: its name in config files.
        clip: bound on how far the ratio of probabilities may leave 1.
        entropy: weight of the entropy bonus, at the start; it falls linearly over warm-up and annealing.
        final_entropy: and in the end.
        normalised_returns: the flavour of MESSENGER's program: `decay` counts for nothing, values learn the returns of
            a rollout, normalised, and advantages are what those exceed the values by (`returns.normalised_returns`).
    """

    algorithm: Literal["ppo"] = "ppo"
    learning_rate: float = 7e-4
    warm_up: float = 20_000
    clip: float = 0.2
    final_entropy: float = 0.001
    normalised_returns: bool = False


class PPOLearner(MinibatchLearner[PPOConfig]):
    """Proximal policy optimisation (Schulman et al. 2017)."""

    def bonus(self, steps: int) -> float:
        """Weight of the entropy after so many environment steps of the schedule."""
        c = self.config
        part = min(1.0, steps / (c.warm_up + c.anneal_steps))
        return c.entropy + (c.final_entropy - c.entropy) * part

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Learn from one agent's column; see `Learner.update`."""
        target, advantage, log_mu = self._prepare(documents, column)

        def losses(games: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
            parts = self._losses(documents, column, games, target, advantage, log_mu)
            policy, baseline, entropy = parts["policy_loss"], parts["baseline_loss"], parts["entropy"]
            loss = policy + self.config.baseline * baseline - self.bonus(steps) * entropy
            return loss + parts.get("auxiliary_loss", 0.0), parts

        return self.descend(documents, column, steps, losses)

    @torch.no_grad()
    def _prepare(self, documents: Documents, column: Column) -> tuple[Tensor, Tensor, Tensor]:
        """Targets, normalised advantages and log probabilities of the behaviour's actions, [T, B] each."""
        log_mu = self._log_probability(self._tensor(column.logits), column.action)
        alive, now = self._tensor(column.alive), self.recall(documents, column)
        if self.config.normalised_returns:
            reward, continues = self._tensor(column.reward), self._tensor(column.continues)
            target, advantage = normalised_returns(reward, self.config.gamma, now.value, continues, alive)
            return target, advantage, log_mu
        returns = self.returns(column, np.arange(column.action.shape[1]), now)
        lived = returns.advantage[alive]
        advantage = (returns.advantage - lived.mean()) / (lived.std() + 1e-8) if len(lived) > 1 else returns.advantage
        return returns.target, advantage, log_mu

    def _losses(
        self,
        documents: Documents,
        column: Column,
        games: np.ndarray,
        target: Tensor,
        advantage: Tensor,
        log_mu: Tensor,
    ) -> dict[str, Tensor]:
        """Loss terms of a minibatch of games [b], means over living steps; the other tensors are [T, B]."""
        now = self.replay(documents, column, games)
        mine = self._tensor(games)
        alive = self._tensor(column.alive[:, games])
        count = alive.sum().clamp(min=1)
        ratio = (self._log_probability(now.logits, column.action[:, games]) - log_mu[:, mine]).exp()
        gain = advantage[:, mine]
        surrogate = torch.minimum(ratio * gain, ratio.clamp(1 - self.config.clip, 1 + self.config.clip) * gain)
        log_pi = now.logits.log_softmax(-1)
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        return {
            "policy_loss": -torch.where(alive, surrogate, 0.0).sum() / count,
            "baseline_loss": torch.where(alive, target[:, mine] - now.value, 0.0).square().sum() / count,
            "entropy": torch.where(alive, entropy, 0.0).sum() / count,
            **self.auxiliary(now, alive),
        }

    def _log_probability(self, logits: Tensor, action: np.ndarray) -> Tensor:
        """[T, b] of actions [T, b] under logits [T, b, A]."""
        return logits.log_softmax(-1).gather(-1, self._tensor(action)[..., None]).squeeze(-1)
