"""The kernel that follows things from frame to frame, and how it remembers them; see `motion`."""

from __future__ import annotations

import numpy as np

from magrounding.jit import cached_njit, inner_njit

WORD, ROW, COLUMN, TENDENCY, MOVED, AGE, STEP, SINCE = range(8)
COLUMNS = 8
"""Of a memory's rows: first agents, of whom ROW and COLUMN count, then what is followed; no WORD: nothing.

TENDENCY: steps that led nearer less those that led away, MOVED: it has moved at all, AGE: frames after its first,
STEP: where the last one led (0: none; up, down, left, right), SINCE: frames after it, as far as FRAMES counts.
"""
TRACKS = 32
"""So many things are followed at most."""
REACH = 2
"""Cells (Manhattan distance) that a thing may have moved from one frame to the next."""
OLD = 1000
"""The oldest AGE."""
STEPS, FRAMES = 2, 4
"""Steps are counted up to so many, frames up to the one before so many."""
GAITS = (2 * STEPS + 1) * 2 * FRAMES
DIRECTIONS = 5 * FRAMES


@cached_njit(nogil=True)
def follow(words, row, column, followed, agents, before, gait, direction, age, after):
    """Fill gait, direction and age [N, M] and the memory `after`; the others are those of `motion.track`."""
    n_agents = agents.shape[1]
    thing, origin = np.empty(TRACKS, np.int64), np.empty(TRACKS, np.int64)
    for n in range(len(words)):
        old, new = before[n], after[n]
        for a in range(n_agents):
            new[a, ROW], new[a, COLUMN] = agents[n, a, 0], agents[n, a, 1]
        count = 0
        for i in range(words.shape[1]):
            if followed[n, i] and count < TRACKS:
                thing[count] = i
                track = new[n_agents + count]
                track[WORD], track[ROW], track[COLUMN] = words[n, i], row[n, i], column[n, i]
                count += 1
        _pair(old[n_agents:], new[n_agents:], count, origin)
        for k in range(count):
            track = new[n_agents + k]
            if origin[k] >= 0:
                _go_on(old[n_agents + origin[k]], track, old[:n_agents])
            tendency = track[TENDENCY] % (2 * STEPS + 1)  # 0, 1, 2, −2, −1: not known yet is 0
            gait[n, thing[k]] = (tendency * 2 + track[MOVED]) * FRAMES + min(track[AGE], FRAMES - 1)
            direction[n, thing[k]] = track[STEP] * FRAMES + track[SINCE]
            age[n, thing[k]] = track[AGE]


@inner_njit
def _pair(old, new, count, origin):
    """origin [count]: which of the old each of the new ones was, or −1; the nearest first, none twice.

    Where two of the same word were in one cell, the one that has moved less is the one that has stayed.
    """
    taken = np.zeros(TRACKS, np.bool_)
    origin[:count] = -1
    while True:
        least, which, whence = np.int64(1 << 30), -1, -1
        for k in range(count):
            for j in range(TRACKS):
                if origin[k] >= 0 or taken[j] or old[j, WORD] != new[k, WORD]:
                    continue
                distance = abs(new[k, ROW] - old[j, ROW]) + abs(new[k, COLUMN] - old[j, COLUMN])
                moves = abs(old[j, TENDENCY]) + old[j, MOVED]
                cost = 8 * distance + (moves if distance == 0 else -moves)
                if distance <= REACH and cost < least:
                    least, which, whence = cost, k, j
        if which < 0:
            return
        origin[which], taken[whence] = whence, True


@inner_njit
def _go_on(old, new, agents):
    """Write to a track what became of it; `agents` are where they were before it moved."""
    down, right = new[ROW] - old[ROW], new[COLUMN] - old[COLUMN]
    nearer = _to_nearest(old, agents) - _to_nearest(new, agents)
    new[TENDENCY] = min(max(old[TENDENCY] + np.sign(nearer), -STEPS), STEPS)
    new[AGE] = min(old[AGE] + 1, OLD)
    if down or right:
        vertical = abs(down) >= abs(right)
        new[MOVED], new[SINCE] = 1, 0
        new[STEP] = (1 if down < 0 else 2) if vertical else (3 if right < 0 else 4)
    else:
        new[MOVED], new[STEP] = old[MOVED], old[STEP]
        new[SINCE] = min(old[SINCE] + 1, FRAMES - 1) if old[STEP] else 0


@inner_njit
def _to_nearest(track, agents):
    """Manhattan distance to the nearest agent alive, 0 where none is."""
    least = -1
    for a in range(len(agents)):
        if agents[a, ROW] >= 0:
            distance = abs(agents[a, ROW] - track[ROW]) + abs(agents[a, COLUMN] - track[COLUMN])
            if least < 0 or distance < least:
                least = distance
    return max(least, 0)
