"""ScienceWorld: the options of the world, and what it is, said without Java."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from magrounding.errors import MissingExtra, check_bool, choose
from magrounding.plain import make_plain
from magrounding.single.scienceworld.tasks import SPLITS, TASKS, task_name
from magrounding.single.scienceworld.words import tokenizer
from magrounding.spec import CHOICES, EPISODE, EXPERT, SCORE, SCORES, EnvSpec, Mask, Text, TextChoices
from magrounding.vector import check_count

if TYPE_CHECKING:
    from magrounding.single.scienceworld.env import ScienceWorldEnv

SIMPLIFICATIONS = ("teleportAction", "selfWateringFlowerPots", "openContainers", "openDoors", "noElectricalAction")
"""What "easy" stands for, less what a task of electricity cannot do without."""

TASK_WORDS, OBSERVATION_WORDS, LOOK_WORDS, INVENTORY_WORDS, CHOICE_WORDS = 128, 320, 320, 128, 20
"""Words of each text; what is longer is cut."""


@dataclass(frozen=True)
class ScienceWorld:
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

    task: str = "find-non-living-thing"
    simplifications: str = "easy"
    max_cycles: int = 100
    max_choices: int = 5120
    failure_penalty: bool = True
    fast_actions: bool = True
    heap: int = 1600
    split: str = "train"

    def __post_init__(self) -> None:
        make_plain(self)
        object.__setattr__(self, "task", choose("task", task_name(self.task), TASKS))
        choose("split", self.split, SPLITS)
        if self.simplifications not in ("", "easy"):
            for each in str(self.simplifications).split(","):
                choose("simplification", each, ("easy", *SIMPLIFICATIONS))
        for name, least in (("max_cycles", 1), ("max_choices", 1), ("heap", 200)):
            check_count(name, getattr(self, name), least, 2**62)
        for name in ("failure_penalty", "fast_actions"):
            check_bool(name, getattr(self, name))

    def describe(self) -> EnvSpec:
        """What the world shows and takes; neither Java nor the simulator is needed."""
        return _spec(self.max_cycles, self.max_choices)

    def make_env(self, render_mode: str | None = None) -> ScienceWorldEnv:
        """The world as a PettingZoo ParallelEnv of one agent; Java starts with its first reset.

        Args:
            render_mode: None, "ansi" or "rgb_array".

        Raises:
            MissingExtra: the simulator is not installed.
            ConfigurationError: there is no Java, or an unknown render mode.
        """
        if find_spec("scienceworld") is None:
            raise MissingExtra("ScienceWorld", "scienceworld")
        from magrounding.single.scienceworld.env import ScienceWorldEnv

        return ScienceWorldEnv(self, render_mode)

    def as_dict(self) -> dict[str, str | int | bool]:
        """Name → value of each option."""
        return asdict(self)


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
