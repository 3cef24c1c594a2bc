"""Value iteration: the next moves of chasing monsters, and the long-run chances of one agent among them.

A table knows one agent and two monsters on an empty map. That is a Markov decision process small enough to solve
outright (10×10: 64³ states, five actions), and it holds all that makes moving monsters dangerous: who closes in,
corners, parity, and that a target may be awaited rather than met. For more monsters, `evasion` puts several looks at
the tables together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from magrounding.envs.rtfm.arrays import COLUMN_STEP, DOWN, LEFT, RIGHT, ROW_STEP, UP
from magrounding.envs.rtfm.dynamics import CHASE_TENTHS
from magrounding.jit import cached_njit, inner_njit

MAX_SIDE = 8
"""Widest interior that tables are made for (a 10×10 map); wider maps are seen through a window of this width."""
SAFE_SHARE = np.float32(0.1)
"""Chance at every step that teammates finish and an agent without a task need evade no longer."""
DISCOUNT = np.float32(0.99)
"""Discount of a step: it costs as much as one game in a hundred, so that of equal plans the shorter one is best."""
TOLERANCE = np.float32(1e-5)
MAX_SWEEPS = 200


class Pursuit(NamedTuple):
    """Values of an agent's cell and two monsters' cells, N cells; cell N stands for "no second monster".

    Attributes:
        armed: [N, N, N + 1] the discounted chance to kill the first monster, its target, and never to meet the second.
        seeking: [orbits, N, N, N + 1] the same of an agent that must first take an item, at a cell that represents all
            those which symmetries of the square map onto it.
        evading: [N, N, N + 1] the chance to keep away from both for as long as it takes the others.
        turned: [8, N + 1] where each symmetry takes a cell.
        symmetry, orbit: [N] the symmetry that takes an item's cell to its representative, and which one that is.
        side: width of the tables' map, in cells.
    """

    armed: np.ndarray
    seeking: np.ndarray
    evading: np.ndarray
    turned: np.ndarray
    symmetry: np.ndarray
    orbit: np.ndarray
    side: int


@cached_njit(nogil=True)
def solve(side, chase_squared, monsters_first, representatives, armed, seeking, evading):
    """Fill the tables of a `Pursuit`.

    Args:
        side: width of the interior, in cells.
        chase_squared: as in `Rules`.
        monsters_first: `Rules.letters`: there is a single monster, and the last axis
            of the tables has the one place for "no second monster".
        representatives: [orbits] int64, the items' cells to solve `seeking` for.
        armed, seeking, evading: zeros.
    """
    cells, second = side * side, armed.shape[2]
    steps, odds = _make_odds(side, chase_squared)
    for agent in range(cells):
        for first in range(cells):
            for other in range(second):
                struck = other == agent and other < second - 1  # by the second monster; meeting the first is the aim
                armed[agent, first, other] = first == agent and not struck
                evading[agent, first, other] = first != agent and not struck
    if monsters_first:
        _iterate_dragon(armed, -1, steps, odds)
    else:
        _iterate(armed, -1, side, steps, odds, DISCOUNT, np.float32(0))
        _iterate(evading, -1, side, steps, odds, np.float32(1) - SAFE_SHARE, SAFE_SHARE)
    for i in range(len(representatives)):
        value, item = seeking[i], representatives[i]
        for first in range(cells):
            for other in range(second):
                value[item, first, other] = armed[item, first, other]
        if monsters_first:
            _iterate_dragon(value, item, steps, odds)
        else:
            _iterate(value, item, side, steps, odds, DISCOUNT, np.float32(0))


@inner_njit
def inside(row, column, side):
    """Tell whether interior coordinates (from 0) are on the map."""
    return row >= 0 and row < side and column >= 0 and column < side  # chained comparisons compile to branches


@njit
def add_move_odds(row, column, agent_row, agent_column, side, chase_squared, share, odds):
    """Add to odds [5] share × the chance of each move of a monster whose nearest agent is that one (see `dynamics`)."""
    legal = 0
    for move in range(5):
        legal += inside(row + ROW_STEP[move], column + COLUMN_STEP[move], side)
    rows, columns = agent_row - row, agent_column - column
    squared = rows * rows + columns * columns
    wander = np.float32(share)
    if squared > 0 and (chase_squared < 0 or squared <= chase_squared):
        chase = np.float32(share * CHASE_TENTHS / 10)
        wander -= chase
        if rows != 0 and columns != 0:
            chase *= np.float32(0.5)
        if rows != 0:
            odds[UP if rows < 0 else DOWN] += chase
        if columns != 0:
            odds[LEFT if columns < 0 else RIGHT] += chase
    for move in range(5):
        if inside(row + ROW_STEP[move], column + COLUMN_STEP[move], side):
            odds[move] += wander / np.float32(legal)


@inner_njit
def _make_odds(side, chase_squared):
    """steps [N, 5] int64, where a move leads, or −1; odds [N, 5, N] float32 of agent's cell, move, monster's cell."""
    cells = side * side
    steps = np.zeros((cells, 5), np.int64)
    odds = np.zeros((cells, 5, cells), np.float32)
    here = np.zeros(5, np.float32)
    for cell in range(cells):
        row, column = cell // side, cell % side
        for move in range(5):
            enters = inside(row + ROW_STEP[move], column + COLUMN_STEP[move], side)
            steps[cell, move] = cell + ROW_STEP[move] * side + COLUMN_STEP[move] if enters else -1
        for agent in range(cells):
            add_move_odds(row, column, agent // side, agent % side, side, chase_squared, 1.0, here)
            for move in range(5):
                odds[agent, move, cell] = here[move]
                here[move] = 0
    return steps, odds


@inner_njit
def _iterate(value, given, side, steps, odds, discount, bonus):
    """Value iteration in place, forwards and backwards in turn; values of the agent's cell `given` are not touched."""
    cells = side * side
    line = np.zeros(cells + 2 * side, np.float32)  # zeros at both ends: moves up and down are shifts by `side`
    best = np.zeros((cells, cells + 1), np.float32)
    for k in range(MAX_SWEEPS):
        change = np.float32(0)
        for i in range(cells):
            agent = i if k % 2 == 0 else cells - 1 - i
            if agent != given:
                change = max(change, _back_up(agent, value, side, steps, odds[agent], line, best, discount, bonus))
        if change < TOLERANCE:
            return


@inner_njit
def _back_up(agent, value, side, steps, odds, line, best, discount, bonus):
    """Improve all values of an agent's cell by one step of planning; returns the largest change.

    Monsters choose independently, so their moves are averaged one after the other: five terms each instead of 25. A
    monster whose cell the agent enters is met there, before it moves.
    """
    cells = side * side
    for first in range(cells):
        for second in range(cells + 1):
            best[first, second] = 0
    for action in range(5):
        to = steps[agent, action]
        if to < 0:
            continue
        following = value[to]
        for first in range(cells):
            alone = np.float32(0)
            for second in range(cells):
                line[side + second] = 0
            for move in range(5):
                reached, share = steps[first, move], odds[move, first]
                if first == to:
                    reached, share = to, np.float32(move == 0)
                if reached >= 0:
                    row = following[reached]
                    for second in range(cells):
                        line[side + second] += share * row[second]
                    alone += share * row[cells]
            result = best[first]
            kept = result[to]  # entering the second monster's cell is worth nothing
            for second in range(cells):
                mean = (
                    odds[0, second] * line[side + second]
                    + odds[1, second] * line[second]
                    + odds[2, second] * line[2 * side + second]
                    + odds[3, second] * line[side + second - 1]
                    + odds[4, second] * line[side + second + 1]
                )
                result[second] = max(result[second], mean)
            result[to] = kept
            result[cells] = max(result[cells], alone)
    change = np.float32(0)
    for first in range(cells):
        for second in range(cells + 1):
            if first != agent and second != agent:
                new = bonus + discount * best[first, second]
                change = max(change, abs(new - value[agent, first, second]))
                value[agent, first, second] = new
    return change


@inner_njit
def _iterate_dragon(value, given, steps, odds):
    """Value iteration where the monster moves first: they meet in the agent's old cell, or in its new one."""
    cells = len(steps)
    for _ in range(MAX_SWEEPS):
        change = np.float32(0)
        for agent in range(cells):
            for monster in range(cells):
                if agent in (given, monster):
                    continue
                best = np.float32(0)
                for action in range(5):
                    to = steps[agent, action]
                    if to < 0:
                        continue
                    mean = np.float32(0)
                    for move in range(5):
                        reached = steps[monster, move]
                        if reached >= 0:
                            place = agent if reached == agent else to
                            mean += odds[agent, move, monster] * value[place, reached, 0]
                    best = max(best, mean)
                best *= DISCOUNT
                change = max(change, abs(best - value[agent, monster, 0]))
                value[agent, monster, 0] = best
        if change < TOLERANCE:
            return
