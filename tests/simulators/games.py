"""Small envs with known rules: agents that die, a single agent, a slow one, one that fails when its action says so."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

HANG, RAISE, DIE, STOP, EXIT = range(2, 7)
"""What the actions of Trouble do."""
NODE = "MAGROUNDING_TEST_NODE"


class Walk(ParallelEnv):
    """Agents walk from 0; agent i dies (or, where `limit` is reached, is truncated) at a place drawn at reset.

    Action 0 stays, 1 walks, 2 is masked at odd places. The first of them to get to its place wins the game for all.
    """

    metadata = {"name": "walk", "render_modes": []}  # noqa: RUF012

    def __init__(self, agents=3, limit=12, mask="observation"):
        self.possible_agents = [f"walker_{i}" for i in range(agents)]
        self.agents = []
        self.max_cycles = limit
        self.mask = mask
        parts = {"place": spaces.Box(0, 50, (), np.int16), "noise": spaces.Box(-np.inf, np.inf, (2, 3), np.float32)}
        if mask == "observation":
            parts["action_mask"] = spaces.Box(0, 1, (3,), np.int8)
        self.space = spaces.Dict(parts)
        self.state_space = spaces.Box(0, 50, (2, agents), np.int16)

    def observation_space(self, agent):
        return self.space

    def action_space(self, agent):
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.places = np.zeros(len(self.agents), np.int16)
        self.goals = self.rng.integers(2, 9, len(self.agents))
        self.steps = 0
        return self._see()

    def step(self, actions):
        assert set(actions) == set(self.agents)
        acting, self.steps = self.agents, self.steps + 1
        moved, illegal = {}, {}
        for agent, action in actions.items():
            i = self.possible_agents.index(agent)
            illegal[agent] = action == 2 and self.places[i] % 2 == 1
            moved[agent] = 0 if illegal[agent] else action
            self.places[i] += moved[agent]
        there = {a: bool(self.places[i] >= self.goals[i]) for i, a in enumerate(self.possible_agents) if a in acting}
        late = self.steps >= self.max_cycles
        observations, infos = self._see()
        for agent in acting:
            if illegal[agent]:
                infos[agent]["illegal"] = True
        self.agents = [] if late else [agent for agent in acting if not there[agent]]
        if not self.agents:
            for agent in acting:
                infos[agent]["won"] = any(there.values())
        rewards = {agent: moved[agent] / 3 + there[agent] for agent in acting}
        return observations, rewards, there, {agent: late and not there[agent] for agent in acting}, infos

    def state(self):
        return np.stack([self.places, self.goals]).astype(np.int16)

    def best_actions(self):
        return np.eye(3, dtype=np.bool_)[np.where(self.places % 2, 1, 2)]

    def _see(self):
        observations, infos = {}, {}
        for agent in self.agents:
            place = self.places[self.possible_agents.index(agent)]
            mask = np.array([1, 1, place % 2 == 0], np.int8)
            observations[agent] = {"place": place, "noise": self.rng.normal(size=(2, 3)).astype(np.float32)}
            if self.mask == "observation":
                observations[agent]["action_mask"] = mask
            infos[agent] = {"action_mask": mask} if self.mask == "infos" else {}
        return observations, infos


class Guess(gymnasium.Env):
    """Shows a number of 4; guessing it is a success and ends the game, a wrong guess scores a point less."""

    observation_space = spaces.Discrete(4)
    action_space = spaces.Discrete(4, start=10)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.number, self.score = int(self.np_random.integers(4)), 0
        return self.number, {}

    def step(self, action):
        assert 10 <= action < 14
        right = action - 10 == self.number
        self.score -= not right
        return self.number, float(right), right, False, {"is_success": right, "score": self.score}


class Placed(Guess):
    """Its score is 1 where the variable NODE is set."""

    def step(self, action):
        *result, info = super().step(action)
        return *result, {**info, "score": NODE in os.environ}


class Counting(gymnasium.Env):
    """Shows its seed and its step; action 1 ends the game, and each step is worth a point."""

    observation_space = spaces.Box(0, 2**31, (2,), np.int64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.seed, self.steps = seed, 0
        return np.array([self.seed, 0]), {}

    def step(self, action):
        self.steps += 1
        return np.array([self.seed, self.steps]), 1.0, action == 1, False, {}


class Trouble(gymnasium.Env):
    """Counts its steps up to 6; actions from HANG on hurt the process. Seeds below `bad_resets` fail at reset."""

    observation_space = spaces.Box(0, 2**31, (2,), np.int64)
    action_space = spaces.Discrete(7)

    def __init__(self, always=None, seconds=60.0):
        self.always, self.seconds = always, seconds

    def reset(self, *, seed=None, options=None):
        self.seed, self.steps = seed, 0
        if self.always == "reset":
            raise RuntimeError("this reset never works")
        return np.array([self.seed, 0]), {}

    def step(self, action):
        action = self.always if isinstance(self.always, int) else action
        if action == HANG:
            time.sleep(self.seconds)
        elif action == RAISE:
            raise RuntimeError("the simulator fell over")
        elif action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        elif action == STOP:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif action == EXIT:
            os._exit(3)
        self.steps += 1
        return np.array([self.seed, self.steps]), 1.0, self.steps == 6, False, {}


class Marking(gymnasium.Env):
    """Leaves a file of its process id when it is closed."""

    observation_space = spaces.Box(0, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, folder):
        self.folder = Path(folder)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def close(self):
        (self.folder / str(os.getpid())).write_text("closed")


class Scripted(gymnasium.Env):
    """Says what it was given to say: each answer is what `reset` or `step` returns."""

    def __init__(self, observation, answers, actions=3):
        self.observation_space, self.action_space = observation, spaces.Discrete(actions)
        self.answers = list(answers)
        self.said = 0

    def reset(self, *, seed=None, options=None):
        return self.say()

    def step(self, action):
        return self.say()

    def say(self):
        self.said += 1
        return self.answers[(self.said - 1) % len(self.answers)]


class ScriptedTeam(ParallelEnv):
    """The same for several agents; each answer is what `agents` are after it, and what `reset` or `step` returns."""

    metadata = {"name": "scripted", "render_modes": []}  # noqa: RUF012

    def __init__(self, observation, answers, names=("ann", "bob")):
        self.possible_agents, self.agents = list(names), []
        self.observation, self.answers, self.said = observation, list(answers), 0

    def observation_space(self, agent):
        return self.observation

    def action_space(self, agent):
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        return self.say()

    def step(self, actions):
        return self.say()

    def say(self):
        self.said += 1
        self.agents, answer = self.answers[(self.said - 1) % len(self.answers)]
        return answer
