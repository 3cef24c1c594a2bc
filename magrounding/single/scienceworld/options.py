"""ScienceWorld: the options of the world, and what it is, said without Java."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Meta

from magrounding.errors import check_choice
from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.tokenizer import Tokenizer
from magrounding.spec import CHOICES, EPISODE, EXPERT, SCORE, SCORES, EnvSpec, Mask, Text, TextChoices

_DATA = Path(__file__).with_name("data")
_VARIATIONS: dict[str, int] = json.loads((_DATA / "variations.json").read_text("utf-8"))
"""Task → how many variations it has."""

TASKS = tuple(_VARIATIONS)
"""Tasks by the simulator's own names, in the order T0 to T29 of the tables of Golchha et al. 2024."""

SPLITS = ("train", "valid", "test")


def task_name(task: str) -> str:
    """Return the simulator's name of a task that may be given as "T0" to "T29"; anything else is returned as it is."""
    number = task[1:] if isinstance(task, str) and task[:1] == "T" else ""
    return TASKS[int(number)] if number.isdecimal() and len(number) < 4 and int(number) < len(TASKS) else task


def variations(task: str) -> dict[str, range]:
    """Return split → its official variations: the first two quarters, the third, and the rest."""
    count = _VARIATIONS[task]
    quarter = count // 4
    parts = range(2 * quarter), range(2 * quarter, 3 * quarter), range(3 * quarter, count)
    return dict(zip(SPLITS, parts, strict=True))


WORDS_FILE = _DATA / "words.json"
"""Words that are one id each, collected by `tools.scienceworld.collect`; any other is spelt."""

SIMPLIFICATIONS = ("teleportAction", "selfWateringFlowerPots", "openContainers", "openDoors", "noElectricalAction")
"""Simplifications of "easy"; a task of electricity leaves out the last."""

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
        heap: bound on the objects of a Java process, in megabytes; one process serves all games of a worker, and takes
            no more than they need (32 games: 1,000). Near the bound, steps take many times longer.
        split: "train", "valid" or "test": which of the official variations are played.
    """

    implementation: ClassVar[str] = "magrounding.single.scienceworld.env:ScienceWorldEnv"
    package: ClassVar[str] = "scienceworld"
    extra: ClassVar[str] = "scienceworld"

    task: Annotated[str, OneOf(TASKS)] = "find-non-living-thing"
    simplifications: str = "easy"
    max_cycles: Count = 100
    max_choices: Count = 5120
    failure_penalty: bool = True
    heap: Annotated[int, Meta(ge=200)] = 1600
    split: Annotated[str, OneOf(SPLITS)] = "train"

    def __post_init__(self) -> None:
        object.__setattr__(self, "task", task_name(self.task))
        super().__post_init__()
        if self.simplifications not in ("", "easy"):
            for each in self.simplifications.split(","):
                check_choice("simplification", each, ("easy", *SIMPLIFICATIONS))

    def describe(self) -> EnvSpec:
        """Return the spec of the world; neither Java nor the simulator is needed."""
        return _spec(self.max_cycles, self.max_choices)


@lru_cache(maxsize=1)
def tokenizer() -> Tokenizer:
    """Return the tokenizer of ScienceWorld's texts."""
    return Tokenizer(json.loads(WORDS_FILE.read_text(encoding="utf-8"))["words"])


@lru_cache(maxsize=32)
def _spec(max_cycles: int, max_choices: int) -> EnvSpec:
    """The tasks differ in nothing that is shown."""
    words = tokenizer()
    return EnvSpec(
        fields=(
            Text("task", (TASK_WORDS,), 0, words.last, shared=True, lifetime=EPISODE),
            Text("observation", (OBSERVATION_WORDS,), 0, words.last),
            Text("look", (LOOK_WORDS,), 0, words.last),
            Text("inventory", (INVENTORY_WORDS,), 0, words.last),
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
