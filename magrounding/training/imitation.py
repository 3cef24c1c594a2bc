"""An imitation learner: behaviour cloning of all moves that an expert holds to be equally good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch

from magrounding.agents.policy import COSTS_TO_GO, LABELS, Policy
from magrounding.schema import Natural, NonNegative, Share
from magrounding.spec import EnvSpec
from magrounding.training.algorithm import IMITATE, Teaching
from magrounding.training.learner import Loss, MinibatchConfig, MinibatchLearner, entropy_of, mean_of
from magrounding.training.trajectory import Minibatch, Trajectory

OLD_NAMES = {"regret": "cost_to_go"}


@dataclass(frozen=True)
class ImitationConfig(MinibatchConfig):
    """Options of the learner, beside those of `MinibatchConfig`.

    The loss is −log of the probability of the *set* of best moves: which of them the student takes is its own choice,
    so ties are no noise. The value learns the returns of the games that were played, for a learner that may follow.

    Attributes:
        teacher_steps: environment steps over which the share of games that the teacher leads falls from 1 to 0; the
            student plays the others, and the teacher labels all (DAgger, Ross et al. 2011). None: behaviour cloning.
        teacher_noise: probability that a led agent takes any action instead.
        cost_to_go: weight of the expected cost-to-go: the share of its chances that the student loses with a move,
            as the expert sees it, averaged over the student's moves (AggreVaTe, Ross and Bagnell 2014). The set of best
            moves says nothing of how bad the others are; with this a deadly move weighs more than a detour. It
            counts for nothing where no expert gives it (`agents.policy.COSTS_TO_GO`): demonstrations never do.
        oracle: which of the environment's oracles teaches (`EnvEntry.other_oracles`); "": its own.
        demonstrations: games of the expert to record before the phase and to learn from (behaviour cloning); 0: the
            expert labels the games of the phase itself.
        carry_memory: of demonstrations, show whole games one after another, so that the memory of a recurrent network
            goes on from unroll to unroll, as in truncated back-propagation; False: every unroll begins afresh.
    """

    renamed: ClassVar[Mapping[str, str]] = OLD_NAMES
    algorithm: ClassVar[str] = "imitation"
    kind: ClassVar[str] = IMITATE
    needs: ClassVar[frozenset[str]] = frozenset({LABELS})
    scaled: ClassVar[tuple[str, ...]] = ("anneal_steps", "teacher_steps")

    value_coefficient: NonNegative = 0.1
    cost_to_go: NonNegative = 0.0
    oracle: str = ""
    teacher_steps: NonNegative | None = 20_000
    teacher_noise: Share = 0.1
    demonstrations: Natural = 0
    carry_memory: bool = False

    def make_learner(self, policy: Policy, spec: EnvSpec, num_envs: int, seed: int) -> ImitationLearner:
        return ImitationLearner(policy, self)

    @property
    def teaching(self) -> Teaching:
        return Teaching(
            oracle=self.oracle,
            noise=self.teacher_noise,
            demonstrations=self.demonstrations,
            carry_memory=self.carry_memory,
            costs_to_go=self.cost_to_go > 0,
        )

    def beta(self, steps: float) -> float:
        """Share of the games that the teacher leads; see `AlgorithmConfig.beta`."""
        if self.teacher_steps is None:
            return 1.0
        return max(0.0, 1.0 - steps / self.teacher_steps) if self.teacher_steps else 0.0


class ImitationLearner(MinibatchLearner[ImitationConfig]):
    """Behaviour cloning on soft labels."""

    def update(self, trajectory: Trajectory, steps: int) -> dict[str, float]:
        """Learn from one agent's labelled trajectory; see `Learner.update`."""
        return self.learn(trajectory.on(self.device), steps, self.loss)

    def loss(self, minibatch: Minibatch) -> Loss:
        """The loss of some games [b], and its parts; "agreement" is the share of best moves taken."""
        c, best, mean = self.config, minibatch.extras[LABELS][:-1], partial(mean_of, where=minibatch.alive)
        now = self.reevaluate(minibatch)
        log_pi = now.logits.log_softmax(-1)
        # The minimum of the dtype stands for "no": −inf would make gradients of a state without any label nan.
        imitation = mean(-torch.where(best, log_pi, torch.finfo(log_pi.dtype).min).logsumexp(-1))
        entropy = mean(entropy_of(log_pi))
        target = self.returns(minibatch, now.value, now.next_value).target
        value = mean((target - now.value).square())
        agreement = mean(best.gather(-1, now.logits.argmax(-1, keepdim=True)).squeeze(-1).float())
        parts = {
            **self.auxiliary(now, minibatch.alive),
            "imitation_loss": imitation,
            "value_loss": value,
            "entropy": entropy,
            "agreement": agreement,
        }
        loss = imitation + c.value_coefficient * value - c.entropy * entropy
        if c.cost_to_go and COSTS_TO_GO in minibatch.extras:
            cost = mean((log_pi.exp() * minibatch.extras[COSTS_TO_GO][:-1]).sum(-1))
            loss, parts["cost_to_go"] = loss + c.cost_to_go * cost, cost
        return loss + parts.get("auxiliary_loss", 0.0), parts
