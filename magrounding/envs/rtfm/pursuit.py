"""Tables of pursuit and evasion: how one agent fares among two moving monsters on an empty map, by value iteration."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from magrounding.envs.rtfm.arrays import COLUMN_STEP, ROW_STEP
from magrounding.envs.rtfm.dynamics import CHASE_TENTHS, can_enter

DISCOUNT = np.float32(0.99)
EVADE_DISCOUNT = np.float32(0.9)


class Pursuit(NamedTuple):
    steps: np.ndarray  # [N, 5] cell reached, -1 wall
    odds: np.ndarray  # [N, N, 5]
    armed: np.ndarray  # [N, N, N+1]
    seeking: np.ndarray  # [orbits, N, N, N+1]
    evading: np.ndarray  # [N, N, N+1]
    turned: np.ndarray  # [8, N+1] cell under each symmetry
    symmetry: np.ndarray  # [N] which symmetry brings a cell to its representative
    orbit: np.ndarray  # [N]


@njit(cache=True)
def chase_odds(side, chase_squared):
    cells = side * side
    odds = np.zeros((cells, cells, 5), np.float32)
    steps = np.full((cells, 5), -1, np.int64)
    for m in range(cells):
        row, column = 1 + m // side, 1 + m % side
        for move in range(5):
            if can_enter(row + ROW_STEP[move], column + COLUMN_STEP[move], side + 2):
                steps[m, move] = m + ROW_STEP[move] * side + COLUMN_STEP[move]
    for a in range(cells):
        for m in range(cells):
            rows, columns = a // side - m // side, a % side - m % side
            squared = rows * rows + columns * columns
            chased = 0 < squared and (chase_squared < 0 or squared <= chase_squared)
            legal = 0
            for move in range(5):
                legal += steps[m, move] >= 0
            share = np.float32((10 - CHASE_TENTHS) / 10 if chased else 1.0) / np.float32(legal)
            for move in range(5):
                if steps[m, move] >= 0:
                    odds[a, m, move] = share
            if chased:
                share = np.float32(CHASE_TENTHS / 10)
                if rows != 0 and columns != 0:
                    share *= np.float32(0.5)
                if rows != 0:
                    odds[a, m, 1 if rows < 0 else 2] += share
                if columns != 0:
                    odds[a, m, 3 if columns < 0 else 4] += share
    return odds, steps


@njit(cache=True, fastmath=True)
def sweep(a, value, side, steps, odds_t, mixed, best, discount, bonus, win):
    """Bellman backup of all states with the agent at cell a. value [N, N, N+1]; odds_t [N, 5, N]."""
    cells = side * side
    best[:] = 0
    for action in range(5):
        to = steps[a, action]
        if to < 0:
            continue
        following = value[to]
        for t in range(cells):
            line = mixed[side : side + cells]
            if t == to:
                for d in range(cells):
                    line[d] = following[t, d]
                absent = following[t, cells]
            else:
                line[:] = 0
                absent = np.float32(0)
                for k in range(5):
                    t_next = steps[t, k]
                    if t_next >= 0:
                        share = odds_t[a, k, t]
                        row = following[t_next]
                        for d in range(cells):
                            line[d] += share * row[d]
                        absent += share * row[cells]
            target = best[t]
            o = odds_t[a]
            keep = target[to]
            for d in range(cells):
                q = (
                    o[0, d] * mixed[side + d]
                    + o[1, d] * mixed[d]
                    + o[2, d] * mixed[2 * side + d]
                    + o[3, d] * mixed[side + d - 1]
                    + o[4, d] * mixed[side + d + 1]
                )
                target[d] = max(target[d], q)
            target[to] = keep  # stepping onto the other one
            target[cells] = max(target[cells], absent)
    change = np.float32(0)
    for t in range(cells):
        if t == a:
            continue
        for d in range(cells + 1):
            if d == a:
                continue
            new = bonus + discount * best[t, d]
            change = max(change, abs(new - value[a, t, d]))
            value[a, t, d] = new
    return change


@njit(cache=True)
def iterate(value, fixed, side, steps, odds_t, discount, bonus, tolerance, sweeps):
    """Value iteration in place until nothing changes by more than `tolerance`; row `fixed` of the agent's cells is given."""
    cells = side * side
    mixed = np.zeros(cells + 2 * side, np.float32)
    best = np.zeros((cells, cells + 1), np.float32)
    for k in range(sweeps):
        change = np.float32(0)
        for i in range(cells):
            a = i if k % 2 == 0 else cells - 1 - i
            if a != fixed:
                change = max(change, sweep(a, value, side, steps, odds_t, mixed, best, discount, bonus, 0))
        if change < tolerance:
            return k + 1
    return sweeps


def symmetries(side):
    cells = np.arange(side * side).reshape(side, side)
    maps = [np.rot90(turned, k).ravel() for turned in (cells, cells.T) for k in range(4)]
    turned = np.stack([np.argsort(m) for m in maps])  # cell -> new cell
    turned = np.concatenate([turned, np.full((8, 1), side * side)], 1)
    lowest = turned[:, :-1].min(0)
    symmetry = turned[:, :-1].argmin(0)
    reps, orbit = np.unique(lowest, return_inverse=True)
    return turned, symmetry, orbit, reps


@lru_cache(maxsize=8)
def pursuit(side, chase_squared, discount=DISCOUNT, evade_discount=EVADE_DISCOUNT, tolerance=1e-4, sweeps=300, verbose=False):
    import time
    cells = side * side
    t0 = time.time()
    odds, steps = chase_odds(side, chase_squared)
    odds_t = np.ascontiguousarray(odds.transpose(0, 2, 1))
    turned, symmetry, orbit, reps = symmetries(side)
    armed = np.zeros((cells, cells, cells + 1), np.float32)
    own = np.arange(cells)
    armed[own, own] = 1
    armed[own, :, own] = 0
    k1 = iterate(armed, -1, side, steps, odds_t, np.float32(discount), np.float32(0), np.float32(tolerance), sweeps)
    t1 = time.time()
    evading = np.ones((cells, cells, cells + 1), np.float32)
    evading[own, own] = 0
    evading[own, :, own] = 0
    e = np.float32(evade_discount)
    k2 = iterate(evading, -1, side, steps, odds_t, e, np.float32(1 - e), np.float32(tolerance), sweeps)
    t2 = time.time()
    seeking = np.zeros((len(reps), cells, cells, cells + 1), np.float32)
    ks = []
    for value, goal in zip(seeking, reps):
        value[goal] = armed[goal]
        ks.append(iterate(value, goal, side, steps, odds_t, np.float32(discount), np.float32(0), np.float32(tolerance), sweeps))
    if verbose:
        print(side, "armed", k1, t1 - t0, "evading", k2, t2 - t1, "seeking", ks, time.time() - t2)
        print("armed mean", armed[:, :, :-1].mean(), "evading", evading.mean(), "seek", seeking[:, :, :, :-1].mean())
    return Pursuit(steps, odds, armed, seeking, evading, turned, symmetry, orbit)
