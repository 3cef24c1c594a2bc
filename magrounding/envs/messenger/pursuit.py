"""Value iteration: the long-run chances of one agent between a target and a hostile entity.

A table knows one agent, one target and one hostile entity on an otherwise empty board. That is a Markov decision
process small enough to solve outright (100 × 361 × 361 states, an eighth of them but for symmetry, five actions), and
it holds what is hard here: who comes along, who has to be cornered, and how the two are got apart. For more hostile
entities, `planning` puts several looks at the tables together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from magrounding.envs.messenger.arrays import CELL, CHASING, FLEEING, IMMOVABLE, WANDERING, X_STEP, Y_STEP
from magrounding.envs.messenger.dynamics import WANDERS, gains
from magrounding.jit import cached_njit, inner_njit

DISCOUNT = np.float32(0.99)
"""Discount of a step: it costs as much as one game in a hundred, so that of equal plans the shorter one is best."""
TOLERANCE = np.float32(1e-4)
MAX_SWEEPS = 100


class Pursuit(NamedTuple):
    """Values of an agent's cell and of the places of two entities, P places (half cells); P itself is "no entity".

    Attributes:
        value: [M, M, orbits, P, P + 1] the discounted chance to touch the target (movement and place) before the
            hostile entity (movement and place), with the agent in the cell that represents its orbit.
        turned: [8, P + 1] where each symmetry takes a place.
        symmetry, orbit: [cells] the symmetry that takes an agent's cell to its representative, and which one that is.
        first: the movement that comes first in `value`; the M − 1 after it follow.
    """

    value: np.ndarray
    turned: np.ndarray
    symmetry: np.ndarray
    orbit: np.ndarray
    first: int


@njit(inline="always")
def stride(movement):
    """Half cells that an entity steps over."""
    return CELL if movement == WANDERING else 1


@njit
def add_reaction_odds(y, x, agent_y, agent_x, movement, edge, share, odds):
    """Add to odds [5] share × the chance of each move of an entity on an agent at that place (see `dynamics`).

    A move over the edge counts as staying.
    """
    if movement == IMMOVABLE:
        odds[0] += share
        return
    step = stride(movement)
    down, right = agent_y - y, agent_x - x
    sign, distance = 1 if movement == CHASING else -1, abs(down) + abs(right)
    count = 0
    for move in range(1, 5):
        count += movement == WANDERING or gains(move, down, right, distance, sign)
    each = share / np.float32(count if count else 4)
    if movement == WANDERING:
        each = share / np.float32(WANDERS[1])
        odds[0] += share * np.float32(WANDERS[1] - WANDERS[0]) / np.float32(WANDERS[1])
    for move in range(1, 5):
        if movement == WANDERING or not count or gains(move, down, right, distance, sign):
            to_y, to_x = y + step * Y_STEP[move], x + step * X_STEP[move]
            blocked = to_y < 0 or to_y > edge or to_x < 0 or to_x > edge
            odds[0 if blocked else move] += each


@cached_njit(nogil=True)
def solve(side, first, representatives, symmetry, orbit, turned, value):
    """Fill the table `value` of a `Pursuit` for a board of side × side cells; its other arrays are given."""
    ways, width = value.shape[0], CELL * (side - 1) + 1
    odds = _make_odds(side, first, ways, representatives)
    free = np.ones((len(representatives), width * width), np.float32)
    for r in range(len(representatives)):
        for place in range(width * width):
            free[r, place] = not touches(representatives[r], place, side)
    shifts = np.array([0, -width, width, -1, 1])
    for target in range(ways):
        anywhere = first + target <= FLEEING  # others never leave whole cells
        rows = np.array([t for t in range(width * width) if anywhere or t // width % CELL + t % width % CELL == 0])
        for hostile in range(ways):
            solved = value[target, hostile]
            steps, hostile_steps = stride(first + target) * shifts, stride(first + hostile) * shifts
            _start(free, rows, solved)
            for sweep in range(MAX_SWEEPS):
                changed = 0
                for i in range(len(representatives)):
                    r = i if sweep % 2 == 0 else len(representatives) - 1 - i
                    cell, ours, theirs = representatives[r], odds[target, r], odds[hostile, r]
                    best = _look_ahead(
                        cell, side, rows, steps, hostile_steps, ours, theirs, symmetry, orbit, turned, solved
                    )
                    changed += _settle(rows, free[r], best, solved[r])
                if changed == 0:
                    break


@njit(inline="always")
def touches(cell, place, side):
    """Tell whether the square of an agent in a cell overlaps that of an entity at a place."""
    width = CELL * (side - 1) + 1
    down, right = place // width - CELL * (cell // side), place % width - CELL * (cell % side)
    return abs(down) < CELL and abs(right) < CELL


@inner_njit
def _make_odds(side, first, ways, representatives):
    """odds [M, orbits, 5, P] float32 of movement, agent's cell, move and entity's place."""
    width = CELL * (side - 1) + 1
    odds = np.zeros((ways, len(representatives), 5, width * width), np.float32)
    here = np.zeros(5, np.float32)
    for way in range(ways):
        for r in range(len(representatives)):
            agent_y, agent_x = CELL * (representatives[r] // side), CELL * (representatives[r] % side)
            for place in range(width * width):
                here[:] = 0
                y, x = place // width, place % width
                add_reaction_odds(y, x, agent_y, agent_x, first + way, width - 1, np.float32(1), here)
                for move in range(5):
                    odds[way, r, move, place] = here[move]
    return odds


@inner_njit
def _start(free, rows, value):
    """The ends: 0 with the hostile entity touched, else 1 with the target touched; 0 for all else to begin with."""
    places = value.shape[1]
    value[:] = 0
    for r in range(len(value)):
        for t in rows:
            if free[r, t] == 0:
                value[r, t, places] = 1
                for h in range(places):
                    value[r, t, h] = free[r, h]


@inner_njit
def _look_ahead(cell, side, rows, target_shifts, shifts, target_odds, odds, symmetry, orbit, turned, value):
    """[P, P + 1] of the target's place (some rows) and the hostile entity's: the best move's expectation."""
    places = value.shape[1]
    best, seen = np.zeros((places, places + 1), np.float32), np.zeros((places, places + 1), np.float32)
    line = np.zeros(places + 2 * shifts[2], np.float32)  # so wide that a move of no chance still leads somewhere
    for move in range(5):
        row, column = cell // side + Y_STEP[move], cell % side + X_STEP[move]
        if row < 0 or row >= side or column < 0 or column >= side:
            continue
        to = row * side + column
        following = value[orbit[to]]
        if symmetry[to]:
            turn = turned[symmetry[to]]
            for t in rows:
                for h in range(places + 1):
                    seen[t, h] = following[turn[t], turn[h]]
            following = seen
        _improve(following, rows, target_shifts, shifts, target_odds, odds, line, best)
    return best


@inner_njit
def _improve(following, rows, target_shifts, shifts, target_odds, odds, line, best):
    """best = the larger of it and the expectation of `following` after both entities' moves.

    They move independently, so their moves are averaged one after the other.
    """
    places, pad = len(following), shifts[2]
    # Slices, as compilers vectorise loops over them but not over an index that might be negative.
    here, up, down, left, right = line[pad:], line[:], line[2 * pad :], line[pad + shifts[3] :], line[pad + shifts[4] :]
    for t in rows:
        for h in range(places):
            here[h] = 0
        alone = np.float32(0)
        for move in range(5):
            share = target_odds[move, t]
            if share > 0:
                row = following[t + target_shifts[move]]
                for h in range(places):
                    here[h] += share * row[h]
                alone += share * row[places]
        result = best[t]
        for h in range(places):
            mean = (
                odds[0, h] * here[h]
                + odds[1, h] * up[h]
                + odds[2, h] * down[h]
                + odds[3, h] * left[h]
                + odds[4, h] * right[h]
            )
            result[h] = mean if mean > result[h] else result[h]
        result[places] = max(result[places], alone)


@inner_njit
def _settle(rows, free, best, value):
    """Discounted, the best move is what a state is worth that is no end; returns how many values changed."""
    places, changed = len(value), 0
    for t in rows:
        if free[t] > 0:
            for h in range(places):
                new = DISCOUNT * best[t, h] * free[h]
                changed += abs(new - value[t, h]) > TOLERANCE
                value[t, h] = new
            value[t, places] = DISCOUNT * best[t, places]
    return changed
