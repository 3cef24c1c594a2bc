"""An independent PPO learner (Schulman et al. 2017), one for each agent, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.schema import Natural, NonNegative
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import end_of_fall, falling
from magrounding.training.learner import Loss, MinibatchConfig, MinibatchLearner, entropy_of, mean_of
from magrounding.training.trajectory import Minibatch, Returns, SentTrajectory, Trajectory, carried_back


@dataclass(frozen=True)
class PPOConfig(MinibatchConfig):
    """Options of the learner, beside those of `MinibatchConfig`; the defaults learn RTFM in minutes with `relread`.

    Attributes:
        clip: bound on how far the ratio of probabilities may leave 1.
        entropy: weight of the entropy bonus, at the start; it changes linearly over warm-up and annealing.
        final_entropy: and in the end; None: .001, or `entropy` where that is less.
        segment: steps that gradients go back through a memory. An unroll is learnt from in segments of so many, each a
            game of its own for `minibatches`; it begins with the memory of acting. 0: the whole unroll.
        clip_values: bound also how far a value may leave what it was, by the same number.
        normalise_advantages: to mean 0 and deviation 1 over a rollout.
        normalised_returns: the flavour of MESSENGER's program: values learn the normalised returns of a rollout, and
            advantages are their excess over the values (the function of this name). `gae_lambda`, `reward_scale` and
            `normalise_advantages` count for nothing then.
    """

    algorithm: ClassVar[str] = "ppo"

    learning_rate: NonNegative = 7e-4
    warm_up: NonNegative = 20_000
    clip: NonNegative = 0.2
    final_entropy: NonNegative | None = None
    segment: Natural = 0
    clip_values: bool = False
    normalise_advantages: bool = True
    normalised_returns: bool = False

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> PPOLearner:
        return PPOLearner(policy, self)


class PPOLearner(MinibatchLearner[PPOConfig]):
    """Proximal policy optimisation (Schulman et al. 2017)."""

    def entropy_coefficient(self, steps: int) -> float:
        """Weight of the entropy after so many environment steps of the schedule."""
        c = self.config
        last = end_of_fall(c.entropy, c.final_entropy, usual=0.001)
        return falling(c.entropy, last, c.warm_up + c.anneal_steps, steps)

    def update(self, trajectory: Trajectory, steps: int) -> dict[str, float]:
        """Learn from one agent's trajectory; see `Learner.update`."""
        coefficient, sent = self.entropy_coefficient(steps), trajectory.on(self.device)
        estimates = [torch.cat(each.chunk(trajectory.segments), 1) for each in self.estimates(sent)]

        def loss(minibatch: Minibatch) -> Loss:
            parts = self.losses(minibatch, *estimates)
            value = self.config.value_coefficient * parts["value_loss"]
            total = parts["policy_loss"] + value - coefficient * parts["entropy"]
            return total + parts.get("auxiliary_loss", 0.0), parts

        return self.learn(sent, steps, loss)

    @torch.no_grad()
    def estimates(self, sent: SentTrajectory) -> tuple[Tensor, Tensor, Tensor]:
        """Return value targets, advantages and log probabilities of the behaviour's actions, [T, B] each."""
        c, steps = self.config, sent.steps()
        log_mu = log_probability(steps.logits, steps.action)
        value, next_value = self.rollout_values(sent)
        if c.normalised_returns:
            returns = normalised_returns(steps.reward, c.gamma, value, steps.nonterminal, steps.alive)
            return returns.target, returns.advantage, log_mu
        target, advantage = self.returns(steps, value, next_value)
        lived = advantage[steps.alive]
        if c.normalise_advantages and len(lived) > 1:
            advantage = (advantage - lived.mean()) / (lived.std() + 1e-8)
        return target, advantage, log_mu

    @torch.no_grad()
    def rollout_values(self, sent: SentTrajectory) -> tuple[Tensor, Tensor]:
        """Values and next values [T, B] as the network predicted them when it acted; its weights are the same still.

        Only the boundary step is evaluated, which it has not seen. The true last observations of truncated episodes
        need the memory of a network that remembers: those trajectories are evaluated again.
        """
        if len(sent.trajectory.truncations):
            now, parts = self.reevaluate(sent.games()), sent.trajectory.segments
            value, following = (torch.cat(each.chunk(parts, 1)) for each in (now.value, now.next_value))
            return value, following
        with self.autocast():
            bootstrap = self.policy(self.policy.encode_batch(sent.boundary())).value.float()
        value = sent.steps().value
        return value, torch.cat((value[1:], bootstrap))

    def losses(self, minibatch: Minibatch, target: Tensor, advantage: Tensor, log_mu: Tensor) -> dict[str, Tensor]:
        """Loss terms of some games [b], means over living steps; the other tensors are [T, B]."""
        clip, alive, now = self.config.clip, minibatch.alive, self.reevaluate(minibatch)
        target, advantage, log_mu = (each[:, minibatch.index] for each in (target, advantage, log_mu))
        ratio = (log_probability(now.logits, minibatch.action) - log_mu).exp()
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        error = torch.where(alive, target - now.value, 0.0).square()
        if self.config.clip_values:
            clipped = minibatch.value + (now.value - minibatch.value).clamp(-clip, clip)
            error = torch.maximum(error, torch.where(alive, target - clipped, 0.0).square())
        return {
            "policy_loss": -mean_of(surrogate, alive),
            "value_loss": mean_of(error, alive),
            "entropy": mean_of(entropy_of(now.logits.log_softmax(-1)), alive),
            **self.auxiliary(now, alive),
        }


def log_probability(logits: Tensor, action: Tensor) -> Tensor:
    """[T, b] of actions [T, b] under logits [T, b, A]."""
    return logits.log_softmax(-1).gather(-1, action[..., None]).squeeze(-1)


@torch.no_grad()
def normalised_returns(reward: Tensor, gamma: float, value: Tensor, nonterminal: Tensor, alive: Tensor) -> Returns:
    """Discounted sums of rewards, normalised over the unroll, and what they exceed the value by.

    The flavour of MESSENGER's program (Hanjie et al. 2021): nothing is added for what the unroll's end cuts off.

    Args:
        gamma: discount of a step.
        reward, nonterminal, alive: [T, B] as of `gae`.
        value: [T, B] values of the learner, which live on the normalised scale.
    """
    total = carried_back(reward, torch.where(nonterminal, gamma, 0.0), reward)
    lived = total[alive]
    if len(lived) > 1:
        total = (total - lived.mean()) / (lived.std() + 1e-5)
    target = torch.where(alive, total, value)
    return Returns(target, target - value)
