"""A tiny text world of the tests: look into boxes for the thing that the task names, and take it.

Which boxes have been looked into has to be remembered, and what a thing is called matters nowhere but in the task: who
has learnt to fetch some things can fetch the others.
"""

import numpy as np

from magrounding.spec import CHOICES, EPISODE, EXPERT, STEP, EnvSpec, Mask, Text, TextChoices
from magrounding.vocabulary import PAD, Vocabulary
from tests.text_world import TextWorld

BOXES, STEPS = 5, 8
THINGS = ("apple", "book", "cup", "doll", "egg", "fork", "glove", "hat", "ink", "jar", "key", "lamp")
TRAIN, TEST = THINGS[:8], THINGS[8:]
WORDS = Vocabulary(("bring", "a", "you", "see", "nothing", "go", "to", "take", "from", "box", *"12345", *THINGS))
MOST = BOXES + 1
SPEC = EnvSpec(
    fields=(
        Text("task", (3,), 0, len(WORDS.words) - 1, shared=True, lifetime=EPISODE),
        Text("said", (8,), 0, len(WORDS.words) - 1, lifetime=STEP),
        Text(CHOICES, (MOST, 6), 0, len(WORDS.words) - 1, lifetime=STEP),
        Mask("action_mask", (MOST,)),
    ),
    num_agents=1,
    actions=TextChoices(MOST, 6),
    words=WORDS.words,
    max_cycles=STEPS,
    capabilities=frozenset({EXPERT}),
)


class TinyRooms(TextWorld):
    """In each of BOXES boxes lies a thing. To take another than the one asked for ends the game, and loses it."""

    metadata = {"name": "tiny_rooms"}  # noqa: RUF012  PettingZoo has it so
    spec = SPEC

    def __init__(self, things=TRAIN):
        super().__init__()
        self.things = things

    def begin(self):
        self.here, self.opened = None, set()
        self.target = str(self.rng.choice(self.things))
        others = [thing for thing in THINGS if thing != self.target]
        self.boxes = [str(thing) for thing in self.rng.choice(others, BOXES, replace=False)]
        self.boxes[int(self.rng.integers(BOXES))] = self.target

    def step(self, actions):
        self.length += 1
        offered, action = self.choices(), actions["agent_0"]
        words = offered[action].split() if action < len(offered) else ["wait"]
        taken = words[1] if words[0] == "take" else None
        if words[0] == "go":
            self.here = int(words[-1]) - 1
            self.opened.add(self.here)
        won, over = taken == self.target, taken is not None or self.length == STEPS
        self.agents = [] if over else self.agents
        parts = (self.look(), float(won), taken is not None, over and taken is None, {"won": won})
        return tuple({"agent_0": part} for part in parts)

    def choices(self):
        """What can be done now, as texts."""
        go = [f"go to box {box + 1}" for box in range(BOXES) if box != self.here]
        return go if self.here is None else [*go, f"take {self.boxes[self.here]} from box {self.here + 1}"]

    def best_actions(self):
        """Labels [1, MOST]: take what is asked for, or else go where it is, or to the first box not looked into."""
        offered, labels = self.choices(), np.zeros((1, MOST), np.bool_)
        if self.here is not None and self.boxes[self.here] == self.target:
            labels[0, len(offered) - 1] = True
            return labels
        found = self.boxes.index(self.target)
        box = found if found in self.opened else min(set(range(BOXES)) - self.opened)
        labels[0, offered.index(f"go to box {box + 1}")] = True
        return labels

    def look(self):
        said = "you see nothing" if self.here is None else f"go to box {self.here + 1} you see {self.boxes[self.here]}"
        offered = self.choices()
        return {
            "task": row(f"bring a {self.target}", 3),
            "said": row(said, 8),
            CHOICES: np.stack([row(text, 6) for text in (*offered, *[""] * (MOST - len(offered)))]),
            "action_mask": (np.arange(MOST) < len(offered)).astype(np.int8),
        }


def row(text, length):
    """A text as ids [length]."""
    ids = [WORDS[word] for word in text.split()]
    return np.array([*ids, *[PAD] * (length - len(ids))], np.int16)
