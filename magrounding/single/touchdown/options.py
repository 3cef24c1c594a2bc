"""Touchdown: the options of the world, and what it is, said from two lists: no city is loaded."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from magrounding.errors import ConfigurationError, check_bool, choose
from magrounding.plain import make_plain
from magrounding.single.tokenizer import Tokenizer
from magrounding.single.touchdown.files import folder_of, read_words
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, LIMIT, MAX_DIRECTIONS, ROWS, SPLITS
from magrounding.spec import COLUMNS as TOWARDS
from magrounding.spec import EPISODE, EXPERT, Directions, EnvSpec, Field, Grid, Mask, Text
from magrounding.vector import check_count
from magrounding.vocabulary import PAD

if TYPE_CHECKING:
    from magrounding.single.touchdown.env import TouchdownEnv

PATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Touchdown:
    """Options of Touchdown.

    Attributes:
        data: folder of a city's files, as `files` says; "": the city of the package.
        max_cycles: steps after which a game is truncated.
        manual_stop: the agent has to say where it stops; else it has arrived as soon as it is there.
        patch: 1, 2, 4 or 8: so many rows and columns of a panorama are shown as one, by the paper's vote, in which rare
            classes count for more.
        turned: the panorama is turned so that the agent looks at its middle; else it stays as it was taken.
        split: "train", "valid" or "test".

    Raises:
        ConfigurationError: an unknown split, or an option that cannot be.
    """

    data: str = ""
    max_cycles: int = LIMIT
    manual_stop: bool = False
    patch: int = 1
    turned: bool = False
    split: str = "train"

    def __post_init__(self) -> None:
        make_plain(self)
        choose("split", self.split, SPLITS)
        check_count("max_cycles", self.max_cycles, 1)
        for name in ("manual_stop", "turned"):
            check_bool(name, getattr(self, name))
        if type(self.patch) is not int or self.patch not in PATCHES:
            raise ConfigurationError(f"patch is one of {', '.join(map(str, PATCHES))}, got {self.patch!r}")
        if not isinstance(self.data, str):
            raise ConfigurationError(f"data is the path of a folder, got {self.data!r}")

    @property
    def num_actions(self) -> int:
        """A: directions, and to stop."""
        return self.actions.count

    @property
    def actions(self) -> Directions:
        """Directions, and to stop where the agent has to say so."""
        return Directions(MAX_DIRECTIONS, self.manual_stop)

    def describe(self) -> EnvSpec:
        """What the world shows and takes.

        Raises:
            DataNotFound: the folder has no list of words.
        """
        return _spec(folder_of(self.data), self.max_cycles, self.actions, self.patch, self.turned)

    def make_env(self, render_mode: str | None = None) -> TouchdownEnv:
        """The world as a PettingZoo ParallelEnv of one agent.

        Args:
            render_mode: None, "ansi" or "rgb_array".

        Raises:
            DataNotFound: the folder lacks a file.
            ConfigurationError: a file that is not what it should be, or an unknown render mode.
        """
        from magrounding.single.touchdown.env import TouchdownEnv

        return TouchdownEnv(self, render_mode)

    def as_dict(self) -> dict[str, str | int | bool]:
        """Name → value of each option."""
        return asdict(self)


@lru_cache(maxsize=8)
def tokenizer(folder: Path) -> Tokenizer:
    """Return the tokenizer of a city's instructions; each class of its panoramas is one of the words."""
    return Tokenizer(dict.fromkeys((*CLASSES, *read_words(folder).words)))


@lru_cache(maxsize=32)
def _spec(folder: Path, max_cycles: int, actions: Directions, patch: int, turned: bool) -> EnvSpec:
    words, longest = tokenizer(folder), read_words(folder).longest
    rows, columns = -(-ROWS // patch), COLUMNS // patch
    scenery = [words.vocabulary[name] for name in ("road", "sidewalk", "building", "terrain", "sky")]
    return EnvSpec(
        fields=(
            Grid(
                "grid",
                (rows, columns, 1),
                0,
                words.last,
                scenery_ids=(PAD, *scenery),
                egocentric=turned,
            ),
            Field("position", (2,), 0, columns - 1),
            Field(TOWARDS, (actions.count,), -1, columns - 1),
            Text("goal", (longest,), 0, words.last, shared=True, lifetime=EPISODE),
            Mask("action_mask", (actions.count,)),
        ),
        num_agents=1,
        actions=actions,
        words=words.words,
        max_cycles=max_cycles,
        time_limit_is_loss=True,
        capabilities=frozenset({EXPERT}),
    )
