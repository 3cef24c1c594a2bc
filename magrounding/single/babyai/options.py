"""BabyAI: the options of the world, and what it is, said without minigrid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

from magrounding.options import SimulatorOptions
from magrounding.schema import Count, OneOf
from magrounding.single.babyai.words import MAX_WORDS, VIEW, VOCABULARY
from magrounding.spec import EPISODE, EXPERT, SCENE, EnvSpec, Field, FixedActions, Grid, Mask, Text
from magrounding.vocabulary import PAD

ROOM = 64
"""Cells of a room, walls included: a mission's limit is 64 × rooms × navigations that it needs."""

_LIMITS = {
    "GoToObj": ROOM,
    "GoToRedBallGrey": ROOM,
    "GoToRedBall": ROOM,
    "GoToLocal": ROOM,
    "PutNextLocal": ROOM * 2,
    "PickupLoc": ROOM,
    "GoToObjMaze": ROOM * 9,
    "GoTo": ROOM * 9,
    "Pickup": ROOM * 9,
    "UnblockPickup": ROOM * 9,
    "Open": ROOM * 9,
    "Unlock": ROOM * 9,
    "PutNext": ROOM * 9 * 2,
    "Synth": ROOM * 9 * 2,
    "SynthLoc": ROOM * 9 * 2,
    "GoToSeq": ROOM * 9 * 4,
    "SynthSeq": ROOM * 9 * 8,
    "GoToImpUnlock": ROOM * 9,
    "BossLevel": ROOM * 9 * 8,
}

MAX_SIDE = 22
"""Cells of three rooms in a row, which share their walls."""

MAX_DISPLACEMENT = 19
"""Rows or columns between two cells of three rooms in a row that can be entered: 20 cells, the doors' included."""

LEVELS = tuple(_LIMITS)
"""The paper's levels, in the order of its Table 2, by the names that minigrid gives them."""

SPLITS = ("train", "valid", "test")

ACTIONS = ("left", "right", "forward", "pickup", "drop", "toggle", "done")


@dataclass(frozen=True)
class BabyAI(SimulatorOptions):
    """Options of BabyAI.

    Attributes:
        level: one of LEVELS.
        max_cycles: steps after which a game is truncated, and of which the reward takes its share; None: the limit
            that the level sets for each mission.
        fast_view: compute views, and the bot's search, by our own code; what comes out is equal, only sooner. Without,
            minigrid's own game is played beside the kernels, and seen.
        displacement: show how far the agent has come from where the episode began, from which a memory of places can be
            kept (`viewread`'s option `places`).
        split: "train", "valid" or "test": which of three disjoint ranges minigrid's seeds are drawn from.

    Raises:
        ConfigurationError: an unknown level or split, or a limit below one step.
    """

    implementation: ClassVar[str] = "magrounding.single.babyai.env:BabyAIEnv"
    package: ClassVar[str] = "minigrid"
    extra: ClassVar[str] = "babyai"

    level: Annotated[str, OneOf(LEVELS)] = "GoToLocal"
    max_cycles: Count | None = None
    fast_view: bool = True
    displacement: bool = False
    split: Annotated[str, OneOf(SPLITS)] = "train"

    def describe(self) -> EnvSpec:
        """Return the spec of the world; minigrid is not needed."""
        return _spec(_LIMITS[self.level] if self.max_cycles is None else self.max_cycles, self.displacement)


@lru_cache(maxsize=32)
def _spec(max_cycles: int, displacement: bool) -> EnvSpec:
    """The levels differ in nothing but their limits."""
    last = len(VOCABULARY) - 1
    scenery = (PAD, *(VOCABULARY[word] for word in ("unseen", "empty", "wall", "floor")))
    come = (Field("displacement", (2,), -MAX_DISPLACEMENT, MAX_DISPLACEMENT),) if displacement else ()
    return EnvSpec(
        fields=(
            Grid(
                "grid",
                (VIEW, VIEW, 3),
                0,
                last,
                scenery_ids=scenery,
                avatar_ids=(VOCABULARY["agent"],),
                words_per_occupant=3,
                egocentric=True,
                own_cell=(VIEW - 1, VIEW // 2),
                passable_ids=tuple(VOCABULARY[word] for word in ("empty", "floor", "goal", "open")),
                hidden_ids=(VOCABULARY["unseen"],),
            ),
            Field("direction", (1,), 0, 3),
            *come,
            Text("goal", (MAX_WORDS,), 0, last, shared=True, lifetime=EPISODE),
            Mask("action_mask", (len(ACTIONS),)),
        ),
        num_agents=1,
        actions=FixedActions(ACTIONS),
        words=VOCABULARY.words,
        max_cycles=max_cycles,
        time_limit_is_loss=True,
        capabilities=frozenset({EXPERT, SCENE}),
    )
