"""The game: agents hand potions to patients; a manual, new in each episode, says which potion cures what."""

from itertools import permutations

from magrounding.envs.own_game import OwnGame
from magrounding.errors import check_choice
from magrounding.spec import EPISODE, EnvSpec, Field, FixedActions, Mask, Text
from magrounding.vocabulary import Vocabulary

POTIONS, AILMENTS = ("red", "green", "blue", "black"), ("cough", "fever", "ache", "rash")
WORDS, CURES = Vocabulary((*POTIONS, *AILMENTS, "cures")), list(permutations(POTIONS))
SPLITS = {"train": [cures for i, cures in enumerate(CURES) if i % 4], "eval": CURES[::4]}


class MyGame(OwnGame):
    """Action: a potion. Reward: 1 for a cure, else −1. Won: all patients are cured. "eval" has manuals of its own."""

    def __init__(self, agents=2, split="train"):
        self.cures = SPLITS[check_choice("split", split, SPLITS)]
        manual = Text("manual", (4, 3), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE)
        fields = manual, Field("patient", (1,), 0, len(WORDS) - 1), Mask("action_mask", (4,))
        super().__init__(EnvSpec(fields, agents, FixedActions(POTIONS), WORDS.words, 1))

    def start(self, rng):
        self.cure = dict(zip(AILMENTS, rng.choice(self.cures), strict=True))
        self.ill = [rng.choice(AILMENTS) for _ in self.agents]
        self.manual = [f"{self.cure[ill]} cures {ill}" for ill in rng.permutation(AILMENTS)]

    def play(self, actions):
        cured = [POTIONS[action] == self.cure[ill] for action, ill in zip(actions, self.ill, strict=True)]
        return [1.0 if each else -1.0 for each in cured], True, all(cured)

    def look(self, agent):
        return {"manual": self.manual, "patient": str(self.ill[agent])}
