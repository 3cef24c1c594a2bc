"""ScienceWorld: the options of the world, and what it is, said without Java."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from msgspec import Meta

from magrounding.errors import choose
from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.scienceworld.tasks import SPLITS, TASKS, task_name
from magrounding.single.scienceworld.words import tokenizer
from magrounding.spec import CHOICES, EPISODE, EXPERT, SCORE, SCORES, EnvSpec, Mask, Text, TextChoices

SIMPLIFICATIONS = ("teleportAction", "selfWateringFlowerPots", "openContainers", "openDoors", "noElectricalAction")
"""What "easy" stands for, less what a task of electricity cannot do without."""

TASK_WORDS, OBSERVATION_WORDS, LOOK_WORDS, INVENTORY_WORDS, CHOICE_WORDS = 128, 320, 320, 128, 20
"""Words of each text; what is longer is cut."""


@dataclass(frozen=True)
class ScienceWorld(SimulatorOptions):
    """Options of ScienceWorld.

    Attributes:
        task: one of TASKS, or "T0" to "T29".
        simplifications: "easy", "", or some of SIMPLIFICATIONS with commas between them.
        max_cycles: steps after which a game is truncated.
        max_choices: rows of `choices`; valid actions beyond them are left out (see `ScienceWorldEnv.left_out`).
        failure_penalty: a step that fails the game costs 100 and the score reached, as in the simulator; False: only
            the score reached.
        fast_actions: ask the simulator for its valid actions in parts; they are the same, only sooner.
        heap: bound on the objects of a Java process, in megabytes; one process serves all games of a worker, and takes
            no more than they need (32 games: 1,000). Near the bound, steps take many times longer.
        split: "train", "valid" or "test": which of the official variations are played.

    Raises:
        ConfigurationError: an unknown task, simplification or split, or a number that cannot be.
    """

    implementation: ClassVar[str] = "magrounding.single.scienceworld.env:ScienceWorldEnv"
    package: ClassVar[str] = "scienceworld"
    extra: ClassVar[str] = "scienceworld"

    task: Annotated[str, OneOf(TASKS)] = "find-non-living-thing"
    simplifications: str = "easy"
    max_cycles: Count = 100
    max_choices: Count = 5120
    failure_penalty: bool = True
    fast_actions: bool = True
    heap: Annotated[int, Meta(ge=200)] = 1600
    split: Annotated[str, OneOf(SPLITS)] = "train"

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", task_name(self.task))
        super().__post_init__()
        if self.simplifications not in ("", "easy"):
            for each in self.simplifications.split(","):
                choose("simplification", each, ("easy", *SIMPLIFICATIONS))

    def describe(self) -> EnvSpec:
        """Return the spec of the world; neither Java nor the simulator is needed."""
        return _spec(self.max_cycles, self.max_choices)


@lru_cache(maxsize=32)
def _spec(max_cycles: int, max_choices: int) -> EnvSpec:
    """The tasks differ in nothing that is shown."""
    words = tokenizer()

    def text(name: str, length: int) -> Text:
        return Text(name, (length,), 0, words.last)

    return EnvSpec(
        fields=(
            Text("task", (TASK_WORDS,), 0, words.last, shared=True, lifetime=EPISODE),
            text("observation", OBSERVATION_WORDS),
            text("look", LOOK_WORDS),
            text("inventory", INVENTORY_WORDS),
            Text(CHOICES, (max_choices, CHOICE_WORDS), 0, words.last),
            Mask("action_mask", (max_choices,)),
        ),
        num_agents=1,
        actions=TextChoices(max_choices, CHOICE_WORDS),
        words=words.words,
        max_cycles=max_cycles,
        time_limit_is_loss=False,
        outcome=SCORE,
        capabilities=frozenset({SCORES, EXPERT}),
    )
