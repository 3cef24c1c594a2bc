"""The paper's nineteen levels as minigrid's games, which are numbered by split, seed and episode."""

from __future__ import annotations

from minigrid.envs.babyai import goto, open, pickup, putnext, synth, unlock
from minigrid.envs.babyai.core.roomgrid_level import RejectSampling, RoomGridLevel
from minigrid.envs.babyai.core.verifier import ObjDesc, PutNextInstr

from magrounding.seeding import stream_key
from magrounding.single.babyai.options import SPLITS

RANGE_BITS = 60
"""Split k draws minigrid's seeds from [k · 2**60, (k + 1) · 2**60)."""

NUM_OBJECTS = 18


class PutNext(RoomGridLevel):
    """Put one thing next to another, in nine rooms with 18 objects (the paper's form; minigrid has one of two rooms).

    Args:
        max_steps: limit of every game; None: by the mission.
    """

    def __init__(self, max_steps: int | None = None) -> None:
        super().__init__(num_rows=3, num_cols=3, max_steps=max_steps)

    def gen_mission(self) -> None:
        """Rooms and doors, objects that can all be reached, and two of them for the mission."""
        self.place_agent()
        self.connect_all()
        objects = self.add_distractors(num_distractors=NUM_OBJECTS, all_unique=False)
        self.check_objs_reachable()
        moved, fixed = self._rand_subset(objects, 2)
        self.instrs = PutNextInstr(ObjDesc(moved.type, moved.color), ObjDesc(fixed.type, fixed.color))


class _KeyToBeFound(RoomGridLevel):
    """A level with one locked room, drawn again where every key to it lies within.

    Minigrid means to put the key into another room, but compares the numbers of rooms by `is`, which is false of
    NumPy's: the door cannot be opened in 2.6 % of its games of Unlock, and 5.4 % of GoToImpUnlock.
    """

    def gen_mission(self) -> None:
        super().gen_mission()
        rooms = [room for row in self.room_grid for room in row]
        colors = [door.color for room in rooms if room.locked for door in room.doors if door]
        within_reach = [(thing.type, thing.color) for room in rooms if not room.locked for thing in room.objs]
        if not any(("key", color) in within_reach for color in colors):
            raise RejectSampling("every key to the locked room lies in it")


class Unlock(_KeyToBeFound, unlock.Unlock):
    """Open the door of the locked room."""


class GoToImpUnlock(_KeyToBeFound, goto.GoToImpUnlock):
    """Go to a thing in the locked room."""


_GAMES = {
    "GoToObj": goto.GoToObj,
    "GoToRedBallGrey": goto.GoToRedBallGrey,
    "GoToRedBall": goto.GoToRedBall,
    "GoToLocal": goto.GoToLocal,
    "PutNextLocal": putnext.PutNextLocal,
    "PickupLoc": pickup.PickupLoc,
    "GoToObjMaze": goto.GoTo,
    "GoTo": goto.GoTo,
    "Pickup": pickup.Pickup,
    "UnblockPickup": pickup.UnblockPickup,
    "Open": open.Open,
    "Unlock": Unlock,
    "PutNext": PutNext,
    "Synth": synth.Synth,
    "SynthLoc": synth.SynthLoc,
    "GoToSeq": goto.GoToSeq,
    "SynthSeq": synth.SynthSeq,
    "GoToImpUnlock": GoToImpUnlock,
    "BossLevel": synth.BossLevel,
}


def make_game(level: str, max_steps: int | None = None) -> RoomGridLevel:
    """Minigrid's game of a level.

    Args:
        level: one of LEVELS.
        max_steps: limit of every game; None: by the mission.
    """
    objects = {"num_dists": 1} if level == "GoToObjMaze" else {}
    return _GAMES[level](max_steps=max_steps, **objects)


def game_seed(seed: int, episode: int, split: str) -> int:
    """The seed that minigrid is reset with: a hash of seed and episode, in the range of the split."""
    place = SPLITS.index(split)
    return (place << RANGE_BITS) + (int(stream_key(seed, episode, place)) >> (64 - RANGE_BITS))
