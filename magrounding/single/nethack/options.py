"""NetHack: the options of the world, and what it is, said without the simulator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from magrounding.errors import ConfigurationError
from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.nethack.words import (
    BEEN,
    BLANK,
    DIRECTIONS,
    DOOR,
    FREE,
    HEIGHT,
    HERO,
    KINDS,
    MAP_END,
    MARKS,
    SHUT,
    WIDTH,
    all_words,
    first_ids,
    tokenizer,
    words_with_marks,
)
from magrounding.spec import (
    EPISODE,
    EXPERT,
    LEVEL,
    SCORE,
    SCORES,
    STEP,
    WON,
    EnvSpec,
    Field,
    FixedActions,
    Grid,
    Mask,
    Move,
    Text,
)
from magrounding.vocabulary import PAD

PROMPTS = {"gold": "get more gold", "scout": "explore the map", "score": "get high score"}
"""SILG's tasks and the sentences that state them (Zhong et al. 2021, app. D)."""

THRESHOLDS = {
    "first": {"gold": 5.28, "scout": 90.4, "score": 10.83},
    "new": {"gold": 5.00, "scout": 315.5, "score": 56.75},
}
"""Gain with which an episode is won: the mean of people's games, in two versions of SILG's program."""

SILG = "silg"
SILG_TASKS = {SILG: tuple(PROMPTS), **{f"{SILG}_{prompt}": (prompt,) for prompt in PROMPTS}}
"""Tasks of SILG and the prompts one of which is drawn for each episode: all three, or one of them alone."""

GOALS = {
    "score": "raise the score",
    "gold": "pick up gold",
    "scout": "see new places",
    "eat": "eat when there is food",
    "staircase": "find a staircase down",
    "staircase_pet": "find a staircase down and bring the pet along",
    "oracle": "find the oracle",
}
"""Tasks of the NetHack Learning Environment, and how they are worded here."""

REACHED = ("staircase", "staircase_pet", "oracle")
"""Tasks that are won or lost; of the others the sum of rewards counts."""

TASKS = (*SILG_TASKS, *GOALS)

SILG_LIMIT, NLE_LIMIT = 80, 5000
"""Steps of an episode: of SILG's program (its paper has 50), and of the NetHack Learning Environment."""

SEEDS = 1_000_000
"""Seeds of each split: NetHack's are 0 … 999,999 in training, the next million in validation, then those of tests."""

SPLITS = ("train", "valid", "test")

_WAYS = ("north", "east", "south", "west", "north east", "south east", "south west", "north west")

ACTIONS = ("more", *_WAYS, *(f"far {way}" for way in _WAYS), "up", "down", "wait", "kick", "eat", "search")
"""The 23 actions, in the order of the NetHack Learning Environment."""


_MOVES = tuple(
    Move(1 + 8 * far + way, down, right, bool(far))
    for way, (down, right) in enumerate(DIRECTIONS.tolist())
    for far in (0, 1)
)
_SCENERY = (*range(12), *range(19, 23))
"""Stone, walls, floors and corridors, among the glyphs from BLANK on."""

GOAL_WORDS, MESSAGE_WORDS, STATUS_WORDS = 12, 48, 32


@dataclass(frozen=True)
class NetHack(SimulatorOptions):
    """Options of NetHack.

    Attributes:
        task: one of TASKS: "silg" draws one of three prompts for each episode, "silg_gold" and others have one alone;
            "score", "staircase" and others are tasks of the NetHack Learning Environment, with its rewards.
        stated: for controls, the prompt that the goal states in the place of the true one; the expert believes it, too.
        max_cycles: steps after which a game is truncated; None: 80, and 5,000 in tasks that are not SILG's.
        thresholds: what an episode of SILG has to gain, "first" or "new".
        characters: each cell of `grid` shows the character on the screen, too.
        colours: and its colour.
        crop: 0, or an odd number: `grid` shows so many rows and columns, with the agent in their middle.
        level: shows all that the episode has seen of the agent's level since it last came there, and what its own
            moves have found out, as `level` [21, 79, 2]: glyph and mark of each cell. The agent's own shows what was
            last seen there, and floor where nothing was. NetHack's stone is padding until the agent has been beside it.
        split: "train", "valid" or "test": which million of NetHack's seeds games are drawn from.
    """

    implementation: ClassVar[str] = "magrounding.single.nethack.env:NetHackEnv"
    package: ClassVar[str] = "nle"
    extra: ClassVar[str] = "nethack"

    task: Annotated[str, OneOf(TASKS)] = SILG
    stated: Annotated[str | None, OneOf(PROMPTS)] = None
    max_cycles: Count | None = None
    thresholds: Annotated[str, OneOf(THRESHOLDS)] = "first"
    characters: bool = False
    colours: bool = False
    crop: Annotated[int, Meta(ge=0, le=2 * WIDTH - 1)] = 0
    level: bool = False
    split: Annotated[str, OneOf(SPLITS)] = "train"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.crop and self.crop % 2 == 0:
            raise ConfigurationError(f"crop is 0 or an odd number, as the agent is in the middle; got {self.crop}")
        if self.stated and self.task not in SILG_TASKS:
            raise ConfigurationError(f"stated is for games of SILG's tasks, not for those of {self.task}")

    @property
    def limit(self) -> int:
        """Steps of an episode."""
        if self.max_cycles is not None:
            return self.max_cycles
        return SILG_LIMIT if self.task in SILG_TASKS else NLE_LIMIT

    def describe(self) -> EnvSpec:
        """Return the spec of the world; the simulator is not needed."""
        return _spec(self.task, self.limit, 1 + self.characters + self.colours, self.crop, self.level)


@lru_cache(maxsize=32)
def _spec(task: str, max_cycles: int, planes: int, crop: int, level: bool) -> EnvSpec:
    glyph, last, texts = first_ids()[0], len(all_words()) - 1, tokenizer().last
    silg = task in SILG_TASKS
    return EnvSpec(
        fields=(
            Grid(
                "grid",
                (crop or HEIGHT, crop or WIDTH, planes),
                0,
                last,
                scenery_ids=(PAD, *range(glyph + BLANK, glyph + MAP_END)),
                avatar_ids=(glyph + HERO,),
                words_per_occupant=planes,
                egocentric=crop > 0,
            ),
            *((_level(glyph, last),) if level else ()),
            Field("position", (2,), -1, WIDTH - 1),
            Text("goal", (GOAL_WORDS,), 0, texts, shared=True, lifetime=EPISODE),
            Text("message", (MESSAGE_WORDS,), 0, texts, lifetime=STEP),
            Text("status", (STATUS_WORDS,), 0, texts, lifetime=STEP),
            Mask("action_mask", (len(ACTIONS),)),
        ),
        num_agents=1,
        actions=FixedActions(ACTIONS, _MOVES),
        words=words_with_marks() if level else all_words(),
        max_cycles=max_cycles,
        time_limit_is_loss=silg,
        outcome=WON if silg or task in REACHED else SCORE,
        capabilities=frozenset({EXPERT}) if silg else frozenset({SCORES}),
    )


def _level(glyph: int, last: int) -> Grid:
    """Return the field of the whole level; marks have the ids after the last."""
    return Grid(
        LEVEL,
        (HEIGHT, WIDTH, 2),
        0,
        last + len(MARKS),
        scenery_ids=(PAD, *(glyph + BLANK + k for k in _SCENERY), last + BEEN),
        words_per_occupant=2,
        passable_ids=tuple((glyph + np.flatnonzero((KINDS == FREE) | (KINDS == DOOR))).tolist()),
        blocked_ids=(last + SHUT,),
        straight_ids=tuple((glyph + np.flatnonzero(KINDS == DOOR)).tolist()),
    )
