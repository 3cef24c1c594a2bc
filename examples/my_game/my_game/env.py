"""The game: agents hand potions to patients; a manual, new in each episode, says which potion cures what."""

from itertools import permutations

import numpy as np
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv

from magrounding.errors import CallOrderError, check_choice
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Mask, Text
from magrounding.texts import content_keys
from magrounding.vector import action_numbers
from magrounding.vocabulary import Vocabulary

POTIONS, AILMENTS = ("red", "green", "blue", "black"), ("cough", "fever", "ache", "rash")
WORDS, CURES = Vocabulary((*POTIONS, *AILMENTS, "cures")), list(permutations(POTIONS))
NAME = {"name": "my_game", "render_modes": []}
SPLITS = {"train": [cures for i, cures in enumerate(CURES) if i % 4], "eval": CURES[::4]}


class MyGame(ParallelEnv):
    """Action: a potion. Reward: 1 for a cure, else −1. Won: all patients are cured. "eval" has manuals of its own."""

    def __init__(self, agents=2, split="train"):
        self.options, self.cures = (agents, split), SPLITS[check_choice("split", split, SPLITS)]
        manual = Text("manual", (4, 3), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE)
        fields = manual, Field("patient", (1,), 0, len(WORDS) - 1), Mask("action_mask", (4,))
        self.spec = EnvSpec(fields, agents, FixedActions(POTIONS), WORDS.words, 1)
        self.metadata, self.possible_agents = NAME, [f"agent_{i}" for i in range(agents)]
        self.spaces, self.rng = (self.spec.space(), Discrete(len(POTIONS))), np.random.default_rng()
        self.agents, self.closed = [], False

    def describe(self):
        return self.spec

    def make_env(self, render_mode=None):
        return MyGame(*self.options)

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def reset(self, seed=None, options=None):
        if self.closed:
            raise CallOrderError("the game is closed: make another")
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents, self.cure = self.possible_agents[:], dict(zip(AILMENTS, self.rng.choice(self.cures), strict=True))
        self.ill = {agent: self.rng.choice(AILMENTS) for agent in self.agents}
        self.manual = [f"{self.cure[ill]} cures {ill}" for ill in self.rng.permutation(AILMENTS)]
        return self.look(), {agent: self.tell() for agent in self.agents}

    def step(self, actions):
        if self.closed or (actions and not self.agents):
            raise CallOrderError("the game is over or closed: call reset(), or make another")
        played = zip(self.agents, action_numbers(actions, self.agents, len(POTIONS)), strict=True)
        good, self.agents = {agent: POTIONS[action] == self.cure[self.ill[agent]] for agent, action in played}, []
        seen, infos = (self.look(), {a: self.tell(won=all(good.values())) for a in good}) if good else ({}, {})
        rewards = {agent: 1.0 if cured else -1.0 for agent, cured in good.items()}
        return seen, rewards, dict.fromkeys(good, True), dict.fromkeys(good, False), infos

    def close(self):
        self.agents, self.closed = [], True

    def look(self):
        lines, seen = np.array([WORDS.encode(line) for line in self.manual], np.int16), {}
        for agent, ill in self.ill.items():
            seen[agent] = {"manual": lines.copy(), "patient": WORDS.encode(ill), "action_mask": np.ones(4, np.int8)}
        return seen

    def tell(self, **ending):
        key = int(content_keys({"manual": np.array([[WORDS.encode(line) for line in self.manual]])})[0])
        return {"text": {"manual": self.manual[:]}, "document": key, "action_mask": np.ones(4, np.int8), **ending}
