"""REINFORCE with a baseline (Williams 1992), one gradient step a rollout."""

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
        return Reinforce(policy, self)


class Reinforce(Learner[ReinforceConfig]):
    """What trains one agent."""

    def __init__(self, policy, config):
        super().__init__(policy, config)
        self.optimizer = torch.optim.Adam(policy.parameters(), config.learning_rate)

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
