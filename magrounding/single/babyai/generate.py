"""Games of one room, generated as minigrid generates them: the same draws, in the same order.

Those of several rooms are longer: what minigrid takes for a new one is little a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.jit import FixedTypes, cached_njit, inner_njit
from magrounding.single.babyai import kernels
from magrounding.single.babyai.kernels import BORDER, EMPTY, GO_TO, PUT_NEXT, WALL, World
from magrounding.single.babyai.words import COLOURS, STATES, TYPES, cell_code

_SPAN = 7
"""Cells from one wall of the room to the other."""
_FIRST, _LAST = BORDER + 1, BORDER + _SPAN
"""Rows and columns within the room begin and end with these."""
_WORDS = 256
"""Words of random bits to begin with, enough for most games."""
_COLOURS = np.array([COLOURS.index(name) for name in sorted(COLOURS)])
"""In the order in which minigrid draws them."""
_SENTENCES = {GO_TO: "go to {}", PUT_NEXT: "put {} next to {}"}
_KINDS = len(COLOURS) * len(STATES)
_KEY = TYPES.index("key")
_RED_BALL, _GREY = cell_code(TYPES.index("ball"), COLOURS.index("red"), 0), COLOURS.index("grey") * len(STATES)


class Plan(NamedTuple):
    """Games of a level.

    Attributes:
        things: number of them, besides the red ball.
        clause: kind of the mission.
        red_ball: whether that is what the mission is about; else it is drawn.
        grey: whether other things are.
        unique: whether no two things are alike.
    """

    things: int
    clause: int = GO_TO
    red_ball: bool = False
    grey: bool = False
    unique: bool = False


PLANS = {
    "GoToObj": Plan(1, unique=True),
    "GoToRedBallGrey": Plan(7, red_ball=True, grey=True),
    "GoToRedBall": Plan(7, red_ball=True),
    "GoToLocal": Plan(8),
    "PutNextLocal": Plan(8, PUT_NEXT, unique=True),
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
    codes, scalars = world.codes[row], world.scalars[row]
    codes[:] = WALL
    codes[_FIRST:_LAST, _FIRST:_LAST] = EMPTY
    scalars[kernels.X] = scalars[kernels.Y] = -_LAST
    x, y = _place(words, at, codes, scalars)
    scalars[kernels.X], scalars[kernels.Y], scalars[kernels.DIRECTION] = x, y, _below(words, at, 4)
    if plan.red_ball:
        x, y = _place(words, at, codes, scalars)
        codes[y, x] = _RED_BALL
    things, count = np.zeros(plan.things, np.int64), 0
    while count < plan.things:
        colour = _COLOURS[_below(words, at, len(_COLOURS))]
        code = (_KEY + _below(words, at, 3)) * _KINDS + colour * len(STATES)
        known = False
        for other in things:
            known |= other == code
        if not (plan.unique and known):
            x, y = _place(words, at, codes, scalars)
            if plan.grey:
                code += _GREY - colour * len(STATES)
            things[count] = codes[y, x] = code
            count += 1
    if not _in_reach(codes, scalars[kernels.X], scalars[kernels.Y]):
        return
    first, second = _RED_BALL, 0
    if not plan.red_ball:
        k = _below(words, at, plan.things)
        first = things[k]
        if plan.clause == PUT_NEXT:
            other = _below(words, at, plan.things - 1)
            second = things[other if other < k else other + 1]
    marks, clause = world.marks[row], world.clauses[row]
    marks[:], clause[:] = 0, 0
    clause[0, 0], clause[0, 1], clause[0, 2] = plan.clause, 1, 2
    for y in range(_FIRST, _LAST):
        for x in range(_FIRST, _LAST):
            marks[y, x] = int(codes[y, x] == first) + 2 * int(codes[y, x] == second)
            if marks[y, x] and 3 - marks[y, x] in (marks[y - 1, x], marks[y, x - 1]):
                return  # they are side by side already
    meant[0], meant[1] = first, second


@inner_njit
def _place(words, at, codes, scalars):
    """Draw a free cell, not beside the agent; no game comes near the 1,000 tries of minigrid."""
    while True:
        x, y = BORDER + _below(words, at, _SPAN + 1), BORDER + _below(words, at, _SPAN + 1)
        if codes[y, x] == EMPTY and abs(scalars[kernels.X] - x) + abs(scalars[kernels.Y] - y) >= 2:
            return x, y


@inner_njit
def _in_reach(codes, x, y):
    """Tell whether the agent, at (x, y), can get to everything without moving a thing."""
    reached = np.zeros(codes.shape, np.bool_)
    reached[y, x] = goes_on = True
    while goes_on:
        goes_on = False
        for y in range(_FIRST, _LAST):
            for x in range(_FIRST, _LAST):
                if reached[y, x] and codes[y, x] == EMPTY:
                    for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                        goes_on |= not reached[near]
                        reached[near] = True
    for y in range(_FIRST, _LAST):
        for x in range(_FIRST, _LAST):
            if codes[y, x] != EMPTY and not reached[y, x]:
                return False
    return True


_draw_game = FixedTypes(draw_game)
