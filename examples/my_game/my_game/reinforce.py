"""REINFORCE with a baseline (Williams 1992): one gradient step for each rollout."""

from dataclasses import dataclass

import numpy as np
import torch

from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.learner import Learner
from magrounding.training.returns import normalised_returns


@dataclass(frozen=True)
class ReinforceConfig(AlgorithmConfig):
    """Options: the rate of Adam."""

    algorithm = "my_reinforce"
    learning_rate: float = 0.01

    def make_learner(self, policy, spec, num_envs, seed):
        learner = Reinforce(policy, self)
        learner.optimizer = torch.optim.Adam(policy.parameters(), self.learning_rate)
        return learner


class Reinforce(Learner[ReinforceConfig]):
    """The learner of one agent."""

    def update(self, column, steps):
        now, names = self.replay(column, np.arange(column.action.shape[1])), ("reward", "continues", "alive", "action")
        reward, continues, alive, action = (self.tensor(getattr(column, name)) for name in names)  # [T, B]
        target, advantage = normalised_returns(reward, 1.0, now.value.detach(), continues, alive)
        chance = now.logits.log_softmax(-1).gather(-1, action[..., None]).squeeze(-1)
        loss = ((target - now.value).square() - chance * advantage)[alive].mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.item()}
