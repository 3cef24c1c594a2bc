"""The two-step cooperative game of QMIX (Rashid et al. 2018, appendix B)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from magrounding.spec import EPISODE, STATE, EnvSpec, Field, FixedActions, Grid, Mask, Text
from magrounding.vocabulary import Vocabulary
from tests.training.toy_games import info_of

START, SAFE, RISKY = 1, 2, 3
PAYOFFS = {SAFE: [[7, 7], [7, 7]], RISKY: [[0, 1], [1, 8]]}


class TwoStepGames:
    """B games of two agents: the first agent's first action picks a matrix game; both play it, and get its payoff.

    The best is 8, in the risky game. Whoever adds up values of agents thinks that one worth less than 7: by a sum
    fitted to uniform play its best pair of actions is worth 6.5.
    """

    id, num_agents = "two_step", 2
    options: ClassVar[dict[str, Any]] = {}
    spec = EnvSpec(
        (
            Grid("grid", (1, 1, 1), 0, 3, scenery_ids=(0,)),
            Field("position", (2,), -1, 0),
            Text("manual", (1, 1), 0, 3, shared=True, lifetime=EPISODE),
            Field("inventory", (1,), 0, 3),
            Mask("action_mask", (2,)),
        ),
        num_agents=2,
        actions=FixedActions(("first", "second")),
        words=Vocabulary(["start", "safe", "risky"]).words,
        max_cycles=2,
        capabilities=frozenset({STATE}),
        state_parts=(("grid", (1, 1, 1)), ("agents", (2, 4))),
    )

    def __init__(self, num_envs=16):
        self.num_envs = num_envs

    def reset(self, seed=None):
        self.at = np.full(self.num_envs, START)
        obs = self._observe()
        nothing = np.zeros(self.num_envs, bool)
        return obs, self._info(nothing, np.zeros((self.num_envs, 2), np.float32), {k: v[:0] for k, v in obs.items()})

    def step(self, actions):
        done = self.at != START
        payoff = [PAYOFFS[at][i][j] if at in PAYOFFS else 0 for at, (i, j) in zip(self.at, actions, strict=True)]
        rewards = np.repeat(np.array(payoff, np.float32)[:, None], 2, 1)
        final = {name: array[done] for name, array in self._observe().items()}
        self.at = np.where(done, START, np.where(actions[:, 0] == 0, SAFE, RISKY))
        terminated = np.repeat(done[:, None], 2, 1)
        return self._observe(), rewards, terminated, np.zeros_like(terminated), self._info(done, rewards, final)

    def state(self):
        state = np.zeros((self.num_envs, 9), np.int16)
        state[:, 0] = self.at
        return state

    def close(self):
        pass

    def _info(self, done, rewards, final):
        return info_of(done, rewards, final, won=rewards[:, 0] == 8, length=np.full(self.num_envs, 2, np.int32))

    def _observe(self):
        obs = self.spec.allocate(self.num_envs)
        obs["grid"][:, :, 0, 0, 0] = self.at[:, None]
        obs["action_mask"][:] = 1
        return obs
