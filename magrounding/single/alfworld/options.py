"""ALFWorld: the options of the world, and what it is, said without the package."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from magrounding.errors import ConfigurationError, choose
from magrounding.plain import make_plain
from magrounding.single.alfworld import package
from magrounding.single.alfworld.scenes import SPLITS
from magrounding.single.alfworld.words import TOKENIZER
from magrounding.spec import CHOICES, EPISODE, EXPERT, STEP, EnvSpec, Grid, Mask, Text, TextChoices
from magrounding.vector import check_count
from magrounding.vocabulary import PAD

if TYPE_CHECKING:
    from magrounding.single.alfworld.env import ALFWorldEnv

MAX_COMMANDS, COMMAND_WORDS = 60, 10
MAX_ITEMS, ITEM_WORDS = 40, 2
HISTORY = 3
GOAL_WORDS, FEEDBACK_WORDS = 24, 144
LIMIT = 50


@dataclass(frozen=True)
class ALFWorld:
    """Options of ALFWorld.

    Attributes:
        games: folder of games in ALFWorld's format, such as those of its download; "": the scenes of the package.
        max_cycles: steps after which a game is truncated.
        split: "train", "valid" or "test".

    Raises:
        ConfigurationError: an unknown split, or a limit below one step.
    """

    games: str = ""
    max_cycles: int = LIMIT
    split: str = "train"

    def __post_init__(self) -> None:
        make_plain(self)
        choose("split", self.split, SPLITS)
        check_count("max_cycles", self.max_cycles, 1)
        if not isinstance(self.games, str):
            raise ConfigurationError(f"games is the path of a folder, got {self.games!r}")

    def describe(self) -> EnvSpec:
        """What the world shows and takes; the package is not needed."""
        return _spec(self.max_cycles)

    def make_env(self, render_mode: str | None = None) -> ALFWorldEnv:
        """The world as a PettingZoo ParallelEnv of one agent.

        Args:
            render_mode: None or "ansi".

        Raises:
            MissingExtra: alfworld is not installed.
            DataNotFound: the folder has no games.
            ConfigurationError: an unknown render mode.
        """
        package.require()
        from magrounding.single.alfworld.env import ALFWorldEnv

        return ALFWorldEnv(self, render_mode)

    def as_dict(self) -> dict[str, str | int]:
        """Name → value of each option."""
        return asdict(self)


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
