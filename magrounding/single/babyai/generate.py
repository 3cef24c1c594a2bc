"""Games of levels without locked rooms and several clauses, as minigrid generates them: the same draws, in order.

Those of the others are longer: what minigrid takes for a new one is little a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.jit import FixedTypes, cached_njit, inner_njit
from magrounding.single.babyai import kernels
from magrounding.single.babyai.kernels import BORDER, EMPTY, GO_TO, PICK_UP, PUT_NEXT, WALL, World
from magrounding.single.babyai.words import COLOURS, STATES, TYPES, cell_code

_SPAN = 7
"""Cells from one wall of a room to the other."""
_WORDS = 256
"""Words of random bits to begin with, enough for most games."""
_COLOURS = np.array([COLOURS.index(name) for name in sorted(COLOURS)])
"""In the order in which minigrid draws them."""
_SENTENCES = {GO_TO: "go to {}", PICK_UP: "pick up {}", PUT_NEXT: "put {} next to {}"}
_KINDS = len(COLOURS) * len(STATES)
_KEY, _DOOR, _CLOSED = TYPES.index("key"), TYPES.index("door"), STATES.index("closed")
_RED_BALL, _GREY = cell_code(TYPES.index("ball"), COLOURS.index("red"), 0), COLOURS.index("grey") * len(STATES)


class Plan(NamedTuple):
    """Games of a level.

    Attributes:
        rooms: in a row, and rows of them.
        things: number of them, besides the red ball.
        clause: kind of the mission.
        red_ball: whether that is what the mission is about; else it is drawn.
        grey: whether other things are.
        unique: whether no two things are alike.
    """

    rooms: int
    things: int
    clause: int = GO_TO
    red_ball: bool = False
    grey: bool = False
    unique: bool = False


PLANS = {
    "GoToObj": Plan(1, 1, unique=True),
    "GoToRedBallGrey": Plan(1, 7, red_ball=True, grey=True),
    "GoToRedBall": Plan(1, 7, red_ball=True),
    "GoToLocal": Plan(1, 8),
    "PutNextLocal": Plan(1, 8, PUT_NEXT, unique=True),
    "GoToObjMaze": Plan(3, 1),
    "GoTo": Plan(3, 18),
    "Pickup": Plan(3, 18, PICK_UP),
    "PutNext": Plan(3, 18, PUT_NEXT),
}
"""By level."""


def generate(plan: Plan, seed: int, world: World, row: int) -> str:
    """Write the game that minigrid makes of a seed into a row; all but its limit. Return its mission."""
    bits, meant, at = np.random.PCG64(seed), np.zeros(2, np.int64), np.zeros(1, np.int64)
    words = bits.random_raw(_WORDS)
    while not meant[0]:
        _draw_game(words, at, plan, world, row, meant)
        if at[0] > 2 * len(words):  # too few: draw the same from the first on, and others
            words = np.concatenate([words, bits.random_raw(3 * len(words))])
            at[0] = meant[0] = 0
    names = []
    for k, code in enumerate(meant):
        several = np.count_nonzero(world.marks[row] & (1 << k)) > 1
        names.append(f"{'a' if several else 'the'} {COLOURS[code % _KINDS // len(STATES)]} {TYPES[code // _KINDS]}")
    return _SENTENCES[plan.clause].format(*names)


@inner_njit
def _below(words, at, count):
    """Draw as NumPy's `Generator.integers(count)` does, from half a word a try (Lemire's method)."""
    if count == 1:
        return 0
    while True:
        half = at[0] % (2 * len(words))
        at[0] += 1
        product = np.int64((words[half // 2] >> np.uint64(32 * (half % 2))) & np.uint64(0xFFFFFFFF)) * count
        if product & 0xFFFFFFFF >= (2**32 - count) % count:
            return product >> 32


@cached_njit()
def draw_game(words, at, plan, world, row, meant):
    """Draw a game into a row.

    Args:
        words: [W] uint64, random bits of minigrid's generator.
        at: [1] int64, how many halves of these have been drawn; more than there are where they are too few.
        meant: [2] int64, written: codes of what the mission is about, and of what that is put next to; nothing where
            minigrid would draw again.
    """
    codes, scalars, side = world.codes[row], world.scalars[row], plan.rooms
    first, last = BORDER + 1, BORDER + _SPAN * side
    codes[:] = WALL
    doors = np.zeros((side, side, 2), np.int64)  # where one to the right and one below would be
    for j in range(side):
        for i in range(side):
            y, x = first + _SPAN * j, first + _SPAN * i
            codes[y : y + _SPAN - 1, x : x + _SPAN - 1] = EMPTY
            if i < side - 1:
                doors[j, i, 0] = y + _below(words, at, _SPAN - 1)
            if j < side - 1:
                doors[j, i, 1] = x + _below(words, at, _SPAN - 1)
    scalars[kernels.X] = scalars[kernels.Y] = -last
    x, y = _place(words, at, codes, scalars, side)
    scalars[kernels.X], scalars[kernels.Y], scalars[kernels.DIRECTION] = x, y, _below(words, at, 4)
    _connect(words, at, codes, doors)
    if plan.red_ball:
        x, y = _place(words, at, codes, scalars, side)
        codes[y, x] = _RED_BALL
    things, count = np.zeros(plan.things, np.int64), 0
    while count < plan.things:
        colour = _COLOURS[_below(words, at, len(_COLOURS))]
        code = (_KEY + _below(words, at, 3)) * _KINDS + colour * len(STATES)
        known = False
        for other in things:
            known |= other == code
        if not (plan.unique and known):
            x, y = _place(words, at, codes, scalars, side)
            if plan.grey:
                code += _GREY - colour * len(STATES)
            things[count] = codes[y, x] = code
            count += 1
    if not _in_reach(codes, scalars[kernels.X], scalars[kernels.Y], last):
        return
    moved, fixed = _RED_BALL, 0
    if not plan.red_ball:
        k = _below(words, at, plan.things)
        moved = things[k]
        if plan.clause == PUT_NEXT:
            other = _below(words, at, plan.things - 1)
            fixed = things[other if other < k else other + 1]
    marks, clause = world.marks[row], world.clauses[row]
    marks[:], clause[:] = 0, 0
    clause[0, 0], clause[0, 1], clause[0, 2] = plan.clause, 1, 2
    for y in range(first, last):
        for x in range(first, last):
            marks[y, x] = int(codes[y, x] == moved) + 2 * int(codes[y, x] == fixed)
            if marks[y, x] and 3 - marks[y, x] in (marks[y - 1, x], marks[y, x - 1]):
                return  # they are side by side already
    if moved != fixed:
        meant[0], meant[1] = moved, fixed


@inner_njit
def _place(words, at, codes, scalars, side):
    """Draw a room, and a free cell of it, not beside the agent; no game comes near the 1,000 tries of minigrid."""
    i, j = _below(words, at, side), _below(words, at, side)
    while True:
        x = BORDER + _SPAN * i + _below(words, at, _SPAN + 1)
        y = BORDER + _SPAN * j + _below(words, at, _SPAN + 1)
        if codes[y, x] == EMPTY and abs(scalars[kernels.X] - x) + abs(scalars[kernels.Y] - y) >= 2:
            return x, y


@inner_njit
def _connect(words, at, codes, doors):
    """Draw doors until every room can be reached from every other."""
    side = len(doors)
    group = np.arange(side * side)  # rooms with a way between them have the same
    while group.min() != group.max():
        i, j, k = _below(words, at, side), _below(words, at, side), _below(words, at, 4)
        to_i, to_j = i + int(k == 0) - int(k == 2), j + int(k == 1) - int(k == 3)
        if 0 <= to_i < side and 0 <= to_j < side:
            left, above = min(i, to_i), min(j, to_j)
            y = x = doors[above, left, k % 2]
            if k % 2 == 0:
                x = BORDER + _SPAN * (left + 1)
            else:
                y = BORDER + _SPAN * (above + 1)
            if codes[y, x] == WALL:
                codes[y, x] = _DOOR * _KINDS + _COLOURS[_below(words, at, len(_COLOURS))] * len(STATES) + _CLOSED
                joined = group[to_j * side + to_i]
                for room in range(side * side):
                    if group[room] == joined:
                        group[room] = group[j * side + i]


@inner_njit
def _in_reach(codes, x, y, last):
    """Tell whether the agent, at (x, y), can get to everything, through doors and without moving a thing."""
    reached = np.zeros(codes.shape, np.bool_)
    reached[y, x] = goes_on = True
    while goes_on:
        goes_on = False
        for y in range(BORDER, last):
            for x in range(BORDER, last):
                if reached[y, x] and (codes[y, x] == EMPTY or codes[y, x] // _KINDS == _DOOR):
                    for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                        goes_on |= not reached[near]
                        reached[near] = True
    for y in range(BORDER, last):
        for x in range(BORDER, last):
            if codes[y, x] != EMPTY and codes[y, x] != WALL and not reached[y, x]:
                return False
    return True


_draw_game = FixedTypes(draw_game)
