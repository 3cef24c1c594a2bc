"""An independent V-trace learner (IMPALA, Espeholt et al. 2018), one for each agent, and its options.

The loss sums over time and averages over the batch, as the programs behind the papers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.errors import choose
from magrounding.training.learner import Learner, check_learning
from magrounding.training.returns import vtrace
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class ImpalaConfig:
    """Options of the learner; the defaults are those of RTFM and EnDi (RTFM appendix D, EnDi appendix B).

    Attributes:
        algorithm: its name in config files.
        unroll: T, steps between two updates.
        learning_rate: at the start of a schedule.
        anneal_steps: environment steps over which the rate falls linearly to 0.
        schedule: "stage": the rate starts anew with every phase; "run": one schedule for the whole curriculum.
        decay: of RMSProp's running mean of squares.
        epsilon: of RMSProp, added after the root.
        momentum: of RMSProp.
        gamma: discount of a step.
        entropy: weight of the entropy bonus.
        baseline: weight of half the squared error of the value.
        modelling: weight of the loss by which a network foresees what others do (EnDi's λ_sup).
        division: weight of the loss by which a network divides entities among agents (EnDi's λ_reg).
        clip_rho: bound on V-trace's importance weights.
        clip_c: bound on the weights that pass later errors back.
        clip_reward: rewards are clipped to ± this.
        clip_gradient: norm of an update's gradient.
        chunk: games a backward pass on a CPU, where smaller passes stay in the caches; 0, and a GPU, take all at once.
            The gradient is the same.
        bf16: compute networks in bfloat16 (losses and weights stay float32).
    """

    algorithm: Literal["impala"] = "impala"
    unroll: int = 80
    learning_rate: float = 0.005
    anneal_steps: float = 1e8
    schedule: str = "stage"
    decay: float = 0.99
    epsilon: float = 0.01
    momentum: float = 0.0
    gamma: float = 0.99
    entropy: float = 0.005
    baseline: float = 0.5
    modelling: float = 1.0
    division: float = 0.1
    clip_rho: float = 1.0
    clip_c: float = 1.0
    clip_reward: float = 1.0
    clip_gradient: float = 40.0
    chunk: int = 4
    bf16: bool = False

    def __post_init__(self) -> None:
        choose("schedule", self.schedule, ("stage", "run"))
        check_learning(self)


class Losses(NamedTuple):
    """Sums over time and some games; `auxiliary` is told of by its means over living steps, see `Learner.auxiliary`."""

    policy: Tensor
    baseline: Tensor
    entropy: Tensor
    auxiliary: dict[str, Tensor]


class ImpalaLearner(Learner):
    """V-trace with RMSProp.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: ImpalaConfig) -> None:
        super().__init__(policy, bf16=config.bf16, modelling=config.modelling, division=config.division)
        self.config = config
        self.optimizer = torch.optim.RMSprop(
            policy.parameters(),
            lr=config.learning_rate,
            alpha=config.decay,
            eps=config.epsilon,
            momentum=config.momentum,
        )

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule."""
        return self.config.learning_rate * max(0.0, 1.0 - steps / self.config.anneal_steps)

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Take one gradient step on one agent's column; see `Learner.update`."""
        rate = self.rate(steps)
        self.set_rate(rate)
        self.optimizer.zero_grad(set_to_none=True)
        batch = column.action.shape[1]
        totals, told = torch.zeros(3), []
        chunk = batch if self.device.type == "cuda" else self.config.chunk or batch
        for start in range(0, batch, chunk):
            games = np.arange(start, min(batch, start + chunk))
            losses = self._losses(documents, column, games)
            told.append({name: part.detach() for name, part in losses.auxiliary.items()})
            c = self.config
            total = losses.policy + c.baseline * losses.baseline - c.entropy * losses.entropy
            total = total + losses.auxiliary.get("auxiliary_loss", 0.0) * int(column.alive[:, games].sum())
            (total / batch).backward()
            totals += torch.stack([part.detach() for part in losses[:3]]).cpu() / batch
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.clip_gradient)
        self.optimizer.step()
        policy, baseline, entropy = totals.tolist()
        return {
            "policy_loss": policy,
            "baseline_loss": baseline,
            "entropy": entropy * batch / max(1, int(column.alive.sum())),
            "gradient_norm": float(norm),
            "learning_rate": rate,
            **{name: float(torch.stack([parts[name] for parts in told]).mean()) for name in told[0]},
        }

    def _losses(self, documents: Documents, column: Column, games: np.ndarray) -> Losses:
        """Loss terms summed over time and over some games."""
        now = self.replay(documents, column, games)
        log_pi = now.logits.log_softmax(-1)  # [T, b, A]
        action = self._tensor(column.action[:, games])[..., None]
        behaviour = self._tensor(column.logits[:, games]).log_softmax(-1)
        log_pi_action = log_pi.gather(-1, action).squeeze(-1)
        log_mu_action = behaviour.gather(-1, action).squeeze(-1)
        alive = self._tensor(column.alive[:, games])
        returns = vtrace(
            (log_pi_action - log_mu_action).detach(),
            self._tensor(column.reward[:, games]).clamp(-self.config.clip_reward, self.config.clip_reward),
            self._tensor(column.worth[:, games]) * self.config.gamma,
            now.value.detach(),
            now.next_value,
            self._tensor(column.continues[:, games]),
            alive,
            clip_rho=self.config.clip_rho,
            clip_c=self.config.clip_c,
        )
        # A masked action has probability 0 and a hugely negative logarithm: their product is 0, and so is its gradient.
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        return Losses(
            policy=torch.where(alive, -log_pi_action * returns.advantage, 0.0).sum(),
            baseline=0.5 * torch.where(alive, returns.target - now.value, 0.0).square().sum(),
            entropy=torch.where(alive, entropy, 0.0).sum(),
            auxiliary=self.auxiliary(now, alive),
        )
