"""An independent V-trace learner (IMPALA, Espeholt et al. 2018), one for each agent, and its options.

The loss sums over time and averages over the batch, as the programs behind the papers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.agents.transfer import as_floats
from magrounding.schema import Count, Natural, NonNegative, Share
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import AlgorithmConfig, AtLeastOne
from magrounding.training.learner import Learner, Loss, entropy_of, summed
from magrounding.training.trajectory import Minibatch, Returns, Trajectory, carried_back


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


class ImpalaLearner(Learner[ImpalaConfig]):
    """V-trace with RMSProp."""

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

    def update(self, trajectory: Trajectory, steps: int) -> dict[str, float]:
        """Take one gradient step on one agent's trajectory; see `Learner.update`."""
        rate = self.rate(steps)
        self.set_rate(rate)
        c, batch, living = self.config, trajectory.num_games, max(1, int(trajectory.alive.sum()))
        size = c.chunk or batch if self.device.type == "cpu" else batch
        games, sent = np.arange(batch), trajectory.on(self.device)

        def loss_of(chunk: np.ndarray) -> Loss:
            policy, value, entropy, auxiliary = self.losses(sent.games(chunk))
            lived = int(trajectory.alive[:, chunk].sum())
            total = policy + c.value_coefficient * value - c.entropy * entropy
            total = total + auxiliary.get("auxiliary_loss", 0.0) * lived
            return total / batch, {
                "policy_loss": policy / batch,
                "value_loss": value / batch,
                "entropy": entropy / living,
                **{name: each * lived / living for name, each in auxiliary.items()},
            }

        def contrast() -> Loss:
            loss, log = self.contrast(sent, games)
            return loss * living / batch, log

        chunks = [partial(loss_of, games[start : start + size]) for start in range(0, batch, size)]
        totals = summed(self.gradient_step([*chunks, *[contrast] * self.contrasts]))
        return {**as_floats(dict(sorted(totals.items()))), "learning_rate": rate}

    def losses(self, minibatch: Minibatch) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        """Losses of policy and value and the entropy, summed over time and some games; and `Learner.auxiliary`."""
        c, alive, now = self.config, minibatch.alive, self.reevaluate(minibatch)
        log_pi, log_mu = now.logits.log_softmax(-1), minibatch.logits.log_softmax(-1)  # [T, b, A]
        action = minibatch.action[..., None]
        log_pi_action = log_pi.gather(-1, action).squeeze(-1)
        returns = vtrace(
            (log_pi_action - log_mu.gather(-1, action).squeeze(-1)).detach(),
            minibatch.reward.clamp(-c.clip_reward, c.clip_reward),
            minibatch.discount * c.gamma,
            now.value.detach(),
            now.next_value,
            minibatch.nonterminal,
            alive,
            clip_rho=c.clip_rho,
            clip_c=c.clip_c,
        )
        policy = torch.where(alive, -log_pi_action * returns.advantage, 0.0).sum()
        value = 0.5 * torch.where(alive, returns.target - now.value, 0.0).square().sum()
        return policy, value, torch.where(alive, entropy_of(log_pi), 0.0).sum(), self.auxiliary(now, alive)


@torch.no_grad()
def vtrace(
    log_ratio: Tensor,
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    next_value: Tensor,
    nonterminal: Tensor,
    alive: Tensor,
    *,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
) -> Returns:
    """V-trace targets and policy-gradient advantages (Espeholt et al. 2018, section 4.1, equation 1 and remark 1).

    Args:
        log_ratio: [T, B] log pi(a) − log mu(a).
        reward, discount, value, next_value, nonterminal, alive: as of `gae`.
        clip_rho: bound on the importance weight of a step.
        clip_c: bound on the weight with which a later error is passed back.
    """
    ratio = log_ratio.exp()
    rho = ratio.clamp(max=clip_rho)
    delta = torch.where(alive, rho * (reward + discount * next_value - value), 0.0)
    passed_back = torch.where(nonterminal & alive, discount * ratio.clamp(max=clip_c), 0.0)
    correction = carried_back(delta, passed_back, value)  # v_t − V(x_t)
    next_correction = torch.cat([correction[1:], torch.zeros_like(correction[:1])])
    next_target = next_value + torch.where(nonterminal, next_correction, 0.0)
    advantage = torch.where(alive, rho * (reward + discount * next_target - value), 0.0)
    return Returns(value + correction, advantage)
