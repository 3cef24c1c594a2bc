"""The game: agents hand potions to patients, and a manual, new in each episode, says which potion cures what."""

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from gymnasium.spaces import Discrete
from pettingzoo import ParallelEnv

from magrounding.errors import choose
from magrounding.spec import EPISODE, READING, EnvSpec, Field, FixedActions, Mask, Text
from magrounding.vocabulary import Vocabulary

POTIONS, AILMENTS, PATIENTS = ("red", "green", "blue", "black"), ("cough", "fever", "ache", "rash"), 3
WORDS = Vocabulary((*POTIONS, *AILMENTS, "cures"))
CURES = list(permutations(POTIONS))
SPLITS = {"train": [cures for i, cures in enumerate(CURES) if i % 4], "eval": CURES[::4]}


@dataclass(frozen=True)
class MyGame:
    """Options: how many agents play, and by which manuals; those of "eval" are never trained on."""

    agents: int = 2
    split: str = "train"

    def __post_init__(self) -> None:
        choose("split", self.split, SPLITS)

    def describe(self) -> EnvSpec:
        manual = Text("manual", (4, 3), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE)
        fields = (manual, Field("patient", (1,), 0, len(WORDS) - 1), Mask("action_mask", (4,)))
        can = frozenset({READING})
        return EnvSpec(fields, self.agents, FixedActions(POTIONS), WORDS.words, max_cycles=PATIENTS, capabilities=can)

    def make_env(self, render_mode=None) -> ParallelEnv:
        return Potions(self)


class Potions(ParallelEnv):
    """Action: a potion. Reward: 1 for a cure, else −1. Won: all patients of all agents are cured."""

    def __init__(self, game: MyGame) -> None:
        self.spec, self.metadata = game.describe(), {"name": "my_game"}
        self.manuals, self.rng = SPLITS[game.split], np.random.default_rng()
        self.possible_agents = [f"agent_{i}" for i in range(game.agents)]
        self.spaces = self.spec.space(), Discrete(len(POTIONS))

    def observation_space(self, agent):
        return self.spaces[0]

    def action_space(self, agent):
        return self.spaces[1]

    def reset(self, seed=None, options=None):
        self.rng = self.rng if seed is None else np.random.default_rng(seed)
        self.agents, self.cured = self.possible_agents[:], []
        self.cures = dict(zip(AILMENTS, self.manuals[self.rng.integers(len(self.manuals))], strict=True))
        self.manual = self.rng.permutation([WORDS.encode(f"{cure} cures {ill}") for ill, cure in self.cures.items()])
        return self.observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        good = {agent: POTIONS[actions[agent]] == self.cures[ill] for agent, ill in self.patients.items()}
        self.cured.append(all(good.values()))
        over, seen = len(self.cured) == PATIENTS, self.observe()
        rewards, infos = {a: 1.0 if good[a] else -1.0 for a in good}, {a: {"won": all(self.cured)} for a in good}
        self.agents = [] if over else self.agents
        return seen, rewards, dict.fromkeys(good, over), dict.fromkeys(good, False), infos

    def observe(self):
        """The next patient of each agent."""
        self.patients = {agent: str(self.rng.choice(AILMENTS)) for agent in self.agents}
        all_legal = np.ones(len(POTIONS), np.int8)
        seen = {agent: {"manual": self.manual, "action_mask": all_legal} for agent in self.agents}
        return {agent: {**seen[agent], "patient": WORDS.encode(ill)} for agent, ill in self.patients.items()}
