"""ALFWorld: the options of the world, and what it is, said without the package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.alfworld import kinds, package
from magrounding.single.alfworld.scenes import SPLITS
from magrounding.single.tokenizer import Tokenizer
from magrounding.spec import CHOICES, EPISODE, EXPERT, STEP, EnvSpec, Grid, Mask, Text, TextChoices
from magrounding.vocabulary import PAD

MAX_COMMANDS, COMMAND_WORDS = 60, 10
MAX_ITEMS, ITEM_WORDS = 40, 2
HISTORY = 3
GOAL_WORDS, FEEDBACK_WORDS = 24, 144
LIMIT = 50

TOKENIZER = Tokenizer((*kinds.GRAMMAR_WORDS, *kinds.NAMES, *map(str, range(1, 31))))


@dataclass(frozen=True)
class ALFWorld(SimulatorOptions):
    """Options of ALFWorld.

    Attributes:
        games: folder of games in ALFWorld's format, such as those of its download; "": the scenes of the package.
        max_cycles: steps after which a game is truncated.
        split: "train", "valid" or "test".
    """

    implementation: ClassVar[str] = "magrounding.single.alfworld.env:ALFWorldEnv"
    package: ClassVar[str] = "alfworld"
    extra: ClassVar[str] = "alfworld"

    games: str = ""
    max_cycles: Count = LIMIT
    split: Annotated[str, OneOf(SPLITS)] = "train"

    def require(self) -> None:
        package.require()

    def describe(self) -> EnvSpec:
        """Return the spec of the world; the package is not needed."""
        return _spec(self.max_cycles)


@lru_cache(maxsize=32)
def _spec(max_cycles: int) -> EnvSpec:
    last = TOKENIZER.last
    return EnvSpec(
        fields=(
            Grid("grid", (MAX_ITEMS, 1, ITEM_WORDS), 0, last, scenery_ids=(PAD,), words_per_occupant=ITEM_WORDS),
            Text("goal", (GOAL_WORDS,), 0, last, shared=True, lifetime=EPISODE),
            Text("feedback", (FEEDBACK_WORDS,), 0, last, lifetime=STEP),
            Text("history", (HISTORY, COMMAND_WORDS), 0, last, lifetime=STEP),
            Text(CHOICES, (MAX_COMMANDS, COMMAND_WORDS), 0, last, lifetime=STEP),
            Mask("action_mask", (MAX_COMMANDS,)),
        ),
        num_agents=1,
        actions=TextChoices(MAX_COMMANDS, COMMAND_WORDS),
        words=TOKENIZER.words,
        max_cycles=max_cycles,
        time_limit_is_loss=True,
        capabilities=frozenset({EXPERT}),
    )
