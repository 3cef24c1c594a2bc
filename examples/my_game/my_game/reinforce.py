"""REINFORCE with a baseline (Williams 1992): one gradient step for each rollout."""

from dataclasses import dataclass

import torch

from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.learner import Learner
from magrounding.training.ppo import normalised_returns


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

    def update(self, trajectory, steps):
        games = trajectory.games(device=self.device)  # all, as tensors [T, B]
        now = self.reevaluate(games)
        target, advantage = normalised_returns(games.reward, 1.0, now.value.detach(), games.nonterminal, games.alive)
        chance = now.logits.log_softmax(-1).gather(-1, games.action[..., None]).squeeze(-1)
        loss = ((target - now.value).square() - chance * advantage)[games.alive].mean()
        self.gradient_step([lambda: (loss, {})])  # refused where the loss is not finite
        return {"loss": loss.item()}
