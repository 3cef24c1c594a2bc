"""What text worlds of the tests have in common: one agent, and texts to choose from."""

import numpy as np
from gymnasium.spaces import Discrete


class TextWorld:
    """A PettingZoo parallel env of one agent; a world has `spec`, `begin`, `step` and `look`."""

    possible_agents = ("agent_0",)
    spec = None

    def __init__(self):
        self.agents, self.rng, self.length = [], np.random.default_rng(), 0
        self.spaces = self.spec.space(), Discrete(self.spec.num_actions)

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents, self.length = ["agent_0"], 0
        self.begin()
        return {"agent_0": self.look()}, {"agent_0": {}}

    def close(self):
        pass
