"""A text world of a few words in which word order is all: who reads bags of words plays at chance between two texts."""

from itertools import permutations

import numpy as np

from magrounding.spec import CHOICES, EPISODE, EnvSpec, Mask, Text, TextChoices
from tests.text_world import TextWorld

WORDS = ("<pad>", "forward", "backward", "you", "hold", "key", "door", "lamp", "take", "nothing")
KEY, DOOR, LAMP, TAKE = (WORDS.index(word) for word in ("key", "door", "lamp", "take"))
OFFERED = [(TAKE, *pair) for pair in permutations((KEY, DOOR, LAMP), 2)]
STEPS = 3
SPEC = EnvSpec(
    fields=(
        Text("task", (2,), 0, len(WORDS) - 1, shared=True, lifetime=EPISODE),
        Text("observation", (3,), 0, len(WORDS) - 1),
        Text("inventory", (2,), 0, len(WORDS) - 1),
        Text(CHOICES, (8, 4), 0, len(WORDS) - 1),
        Mask("action_mask", (8,)),
    ),
    num_agents=1,
    actions=TextChoices(8, 4),
    words=WORDS,
    max_cycles=STEPS,
)


class OrderGame(TextWorld):
    """ "forward" asks for "take key door", "backward" for "take door key": a point for each of three steps."""

    metadata = {"name": "order"}  # noqa: RUF012  PettingZoo has it so
    spec = SPEC

    def begin(self):
        self.points = 0
        self.task = int(self.rng.integers(1, 3))

    def step(self, actions):
        wanted = (TAKE, KEY, DOOR) if self.task == 1 else (TAKE, DOOR, KEY)
        gain = int(tuple(self.offered[actions["agent_0"], :3]) == wanted)
        self.length, self.points = self.length + 1, self.points + gain
        over = self.length == STEPS
        self.agents = [] if over else self.agents
        parts = (self.look(), float(gain), over, False, {"won": over and self.points == STEPS})
        return tuple({"agent_0": part} for part in parts)

    def look(self):
        self.offered = np.zeros((8, 4), np.int16)
        self.offered[: len(OFFERED), :3] = self.rng.permutation(OFFERED)
        mask = (np.arange(8) < len(OFFERED)).astype(np.int8)
        return {
            "task": np.array([self.task, 0], np.int16),
            "observation": np.array([3, 4, 5 + self.length % 3], np.int16),
            "inventory": np.array([9, 0], np.int16),
            CHOICES: self.offered.copy(),
            "action_mask": mask,
        }
