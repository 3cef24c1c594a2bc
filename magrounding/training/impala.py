"""An independent V-trace learner (IMPALA, Espeholt et al. 2018), one for each agent, and its options.

The loss sums over time and averages over the batch, as the programs behind the papers do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.schema import Count, Natural, NonNegative, Share
from magrounding.training.algorithm import AlgorithmConfig, AtLeastOne
from magrounding.training.experience import Column
from magrounding.training.learner import Learner
from magrounding.training.returns import vtrace

if TYPE_CHECKING:
    from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class ImpalaConfig(AlgorithmConfig):
    """Options of the learner; the defaults are those of Zhong et al. 2020, app. D, and Ding et al. 2023, app. B.

    Attributes:
        learning_rate: at the start of a schedule.
        anneal_steps: environment steps over which the rate falls linearly to 0.
        alpha: of RMSProp's running mean of squares.
        epsilon: of RMSProp, added after the root.
        momentum: of RMSProp.
        gamma: discount of a step.
        entropy: weight of the entropy bonus.
        value_coefficient: weight of half the squared error of the value.
        clip_rho: bound on V-trace's importance weights.
        clip_c: bound on the weights that pass later errors back.
        clip_reward: rewards are clipped to ± this.
        clip_gradient: norm of an update's gradient; 0: no bound.
        chunk: games a backward pass on a CPU, where smaller passes stay in the caches; 0, and a GPU, take all at once.
            The gradient is the same.
    """

    algorithm: ClassVar[str] = "impala"
    scaled: ClassVar[tuple[str, ...]] = ("anneal_steps",)

    unroll: Count = 80
    learning_rate: NonNegative = 0.005
    anneal_steps: AtLeastOne = 1e8
    alpha: Share = 0.99
    epsilon: NonNegative = 0.01
    momentum: Share = 0.0
    gamma: Share = 0.99
    entropy: NonNegative = 0.005
    value_coefficient: NonNegative = 0.5
    clip_rho: NonNegative = 1.0
    clip_c: NonNegative = 1.0
    clip_reward: NonNegative = 1.0
    clip_gradient: NonNegative = 40.0
    chunk: Natural = 4

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> ImpalaLearner:
        return ImpalaLearner(policy, self)


class Losses(NamedTuple):
    """Sums over time and some games; `auxiliary` are means over living steps, see `Learner.auxiliary`."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    auxiliary: dict[str, Tensor]


class ImpalaLearner(Learner[ImpalaConfig]):
    """V-trace with RMSProp.

    Args:
        policy: the network, on its device.
        config: options.
    """

    def __init__(self, policy: Policy, config: ImpalaConfig) -> None:
        super().__init__(policy, config)
        self.optimizer = torch.optim.RMSprop(
            policy.parameters(),
            lr=config.learning_rate,
            alpha=config.alpha,
            eps=config.epsilon,
            momentum=config.momentum,
        )

    def rate(self, steps: int) -> float:
        """Learning rate after so many environment steps of the schedule."""
        return self.config.learning_rate * max(0.0, 1.0 - steps / self.config.anneal_steps)

    def update(self, column: Column, steps: int) -> dict[str, float]:
        """Take one gradient step on one agent's column; see `Learner.update`."""
        rate = self.rate(steps)
        self.set_rate(rate)
        c, batch, living = self.config, column.action.shape[1], max(1, int(column.alive.sum()))
        size = batch if self.device.type == "cuda" else c.chunk or batch
        chunks = [np.arange(start, min(batch, start + size)) for start in range(0, batch, size)]

        def loss_of(games: np.ndarray) -> tuple[Tensor, dict[str, Tensor]]:
            losses, lived = self._losses(column, games), int(column.alive[:, games].sum())
            total = losses.policy + c.value_coefficient * losses.value - c.entropy * losses.entropy
            total = total + losses.auxiliary.get("auxiliary_loss", 0.0) * lived
            return total / batch, {
                "policy_loss": losses.policy / batch,
                "value_loss": losses.value / batch,
                "entropy": losses.entropy / living,
                **{name: each * lived / living for name, each in losses.auxiliary.items()},
            }

        def contrast() -> tuple[Tensor, dict[str, Tensor]]:
            loss, log = self.contrast(column, np.arange(batch))
            return loss * living / batch, log

        logs = self.differentiate([*(partial(loss_of, games) for games in chunks), *[contrast] * self.contrasts])
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), c.clip_gradient or math.inf)
        self.optimizer.step()
        names = {name for log in logs for name in log}
        means = {name: float(sum(log[name] for log in logs if name in log)) for name in sorted(names)}
        return {**means, "gradient_norm": float(norm), "learning_rate": rate}

    def _losses(self, column: Column, games: np.ndarray) -> Losses:
        """Loss terms summed over time and over some games."""
        now = self.replay(column, games)
        log_pi = now.logits.log_softmax(-1)  # [T, b, A]
        action = self.tensor(column.action[:, games])[..., None]
        behaviour = self.tensor(column.logits[:, games]).log_softmax(-1)
        log_pi_action = log_pi.gather(-1, action).squeeze(-1)
        log_mu_action = behaviour.gather(-1, action).squeeze(-1)
        alive = self.tensor(column.alive[:, games])
        returns = vtrace(
            (log_pi_action - log_mu_action).detach(),
            self.tensor(column.reward[:, games]).clamp(-self.config.clip_reward, self.config.clip_reward),
            self.tensor(column.discount[:, games]) * self.config.gamma,
            now.value.detach(),
            now.next_value,
            self.tensor(column.continues[:, games]),
            alive,
            clip_rho=self.config.clip_rho,
            clip_c=self.config.clip_c,
        )
        # A masked action has probability 0 and a hugely negative logarithm: their product is 0, and so is its gradient.
        entropy = -(log_pi.exp() * log_pi).sum(-1)
        return Losses(
            policy=torch.where(alive, -log_pi_action * returns.advantage, 0.0).sum(),
            value=0.5 * torch.where(alive, returns.target - now.value, 0.0).square().sum(),
            entropy=torch.where(alive, entropy, 0.0).sum(),
            auxiliary=self.auxiliary(now, alive),
        )
