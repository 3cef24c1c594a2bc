"""The game: agents hand potions to patients; a manual, new in each episode, says which potion cures what."""

from itertools import permutations

import numpy as np
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv

from magrounding.errors import choose
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Mask, Text
from magrounding.vocabulary import Vocabulary

POTIONS, AILMENTS = ("red", "green", "blue", "black"), ("cough", "fever", "ache", "rash")
WORDS, CURES = Vocabulary((*POTIONS, *AILMENTS, "cures")), list(permutations(POTIONS))
SPLITS = {"train": [cures for i, cures in enumerate(CURES) if i % 4], "eval": CURES[::4]}


class MyGame(ParallelEnv):
    """Action: a potion. Reward: 1 for a cure, else −1. Won: all patients are cured. "eval" has manuals of its own."""

    def __init__(self, agents=2, split="train"):
        self.options, self.cures = (agents, split), SPLITS[choose("split", split, SPLITS)]
        manual = Text("manual", (4, 3), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE)
        fields = manual, Field("patient", (1,), 0, len(WORDS) - 1), Mask("action_mask", (4,))
        self.spec = EnvSpec(fields, agents, FixedActions(POTIONS), WORDS.words, 1)
        self.metadata, self.possible_agents = {"name": "my_game"}, [f"agent_{i}" for i in range(agents)]
        self.spaces, self.rng = (self.spec.space(), Discrete(len(POTIONS))), np.random.default_rng()

    def describe(self):
        return self.spec

    def make_env(self, render_mode=None):
        return MyGame(*self.options)

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents, self.cure = self.possible_agents[:], dict(zip(AILMENTS, self.rng.choice(self.cures), strict=True))
        self.ill = {agent: self.rng.choice(AILMENTS) for agent in self.agents}
        lines = [WORDS.encode(f"{potion} cures {ill}") for ill, potion in self.cure.items()]
        seen = {"manual": self.rng.permutation(lines), "action_mask": np.ones(4, np.int8)}
        self.seen = {agent: {**seen, "patient": WORDS.encode(ill)} for agent, ill in self.ill.items()}
        return self.seen, {agent: {} for agent in self.agents}

    def step(self, actions):
        good, self.agents = {agent: POTIONS[actions[agent]] == self.cure[ill] for agent, ill in self.ill.items()}, []
        rewards, infos = {a: 1.0 if good[a] else -1.0 for a in good}, {a: {"won": all(good.values())} for a in good}
        return self.seen, rewards, dict.fromkeys(good, True), dict.fromkeys(good, False), infos
