"""The two-step cooperative game of QMIX (Rashid et al. 2018, appendix B)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from magrounding.observation import ObservationField, ObservationSpec
from magrounding.vocabulary import Vocabulary

START, SAFE, RISKY = 1, 2, 3
PAYOFFS = {SAFE: [[7, 7], [7, 7]], RISKY: [[0, 1], [1, 8]]}


class TwoStepGames:
    """B games of two agents: the first agent's first action picks a matrix game; both play it, and get its payoff.

    The best is 8, in the risky game. Whoever adds up values of agents thinks that one worth less than 7: by a sum
    fitted to uniform play its best pair of actions is worth 6.5.
    """

    id, num_agents, max_cycles, time_limit_is_loss = "two_step", 2, 2, True
    state_layout: ClassVar = {"grid": (slice(0, 1), (1, 1, 1)), "agents": (slice(1, 9), (2, 4))}
    vocabulary = Vocabulary(["start", "safe", "risky"])
    spec = ObservationSpec(
        (
            ObservationField("grid", (1, 1, 1), 0, 3),
            ObservationField("position", (2,), -1, 0),
            ObservationField("manual", (1, 1), 0, 3, shared=True),
            ObservationField("inventory", (1,), 0, 3),
            ObservationField("action_mask", (2,), 0, 1, "int8"),
        ),
        num_agents=2,
        num_actions=2,
        height=1,
        width=1,
        vocabulary_size=4,
        scenery_ids=(0,),
        avatar_ids=(),
    )

    def __init__(self, num_envs=16):
        self.num_envs = num_envs

    def reset(self, seed=None):
        self.at = np.full(self.num_envs, START)
        self.info = {"alive": np.ones((self.num_envs, 2), bool), "document": np.zeros(self.num_envs, np.int64)}
        return self._observe()

    def step(self, actions):
        done = self.at != START
        payoff = [PAYOFFS[at][i][j] if at in PAYOFFS else 0 for at, (i, j) in zip(self.at, actions, strict=True)]
        rewards = np.repeat(np.array(payoff, np.float32)[:, None], 2, 1)
        final = {name: array[done] for name, array in self._observe().items()}
        self.at = np.where(done, START, np.where(actions[:, 0] == 0, SAFE, RISKY))
        self.info |= {"done": done, "won": rewards[:, 0] == 8, "length": np.full(self.num_envs, 2, np.int32)}
        self.info |= {"return": rewards, "final_rows": np.flatnonzero(done), "final_observation": final}
        terminated = np.repeat(done[:, None], 2, 1)
        return self._observe(), rewards, terminated, np.zeros_like(terminated), self.info

    def state(self):
        state = np.zeros((self.num_envs, 9), np.int16)
        state[:, 0] = self.at
        return state

    def _observe(self):
        obs = self.spec.allocate(self.num_envs)
        obs["grid"][:, :, 0, 0, 0] = self.at[:, None]
        obs["action_mask"][:] = 1
        return obs
