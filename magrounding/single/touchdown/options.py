"""Touchdown: the options of the world, and what it is, said from two lists: no city is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.tokenizer import Tokenizer
from magrounding.single.touchdown.files import folder_of, read_words
from magrounding.single.touchdown.layout import CLASSES, COLUMNS, LIMIT, MAX_DIRECTIONS, ROWS, SPLITS
from magrounding.spec import COLUMNS as TOWARDS
from magrounding.spec import EPISODE, EXPERT, Directions, EnvSpec, Field, Grid, Mask, Text
from magrounding.vocabulary import PAD


@dataclass(frozen=True)
class Touchdown(SimulatorOptions):
    """Options of Touchdown.

    Attributes:
        data: folder of a city's files, as `files` says; "": the city of the package.
        max_cycles: steps after which a game is truncated.
        manual_stop: the agent has to say where it stops; else it has arrived as soon as it is there.
        patch: 1, 2, 4 or 8: so many rows and columns of a panorama are shown as one, by the paper's vote, in which rare
            classes count for more.
        turned: the panorama is turned so that the agent looks at its middle; else it stays as it was taken.
        split: "train", "valid" or "test".
    """

    implementation: ClassVar[str] = "magrounding.single.touchdown.env:TouchdownEnv"

    data: str = ""
    max_cycles: Count = LIMIT
    manual_stop: bool = False
    patch: Literal[1, 2, 4, 8] = 1
    turned: bool = False
    split: Annotated[str, OneOf(SPLITS)] = "train"

    @property
    def actions(self) -> Directions:
        """Directions, and to stop where the agent has to say so."""
        return Directions(MAX_DIRECTIONS, self.manual_stop)

    def describe(self) -> EnvSpec:
        """Return the spec of the world; DataNotFound where the folder has no list of words."""
        return _spec(folder_of(self.data), self.max_cycles, self.actions, self.patch, self.turned)


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
            Grid("grid", (rows, columns, 1), 0, words.last, scenery_ids=(PAD, *scenery), egocentric=turned),
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
