"""Ways over NetHack's map: how many actions each cell is away, steps and runs counted alike, and how to begin."""

from __future__ import annotations

from magrounding.jit import cached_njit
from magrounding.single.nethack.cells import BLOCKED, DIRECTIONS, DOOR, FREE, UNKNOWN
from magrounding.single.nethack.words import HEIGHT, WIDTH

_STEP, _RUN = 1, 9
"""The actions that go north and run north; the other directions follow."""


@cached_njit()
def _allowed(kinds, r, c, dr, dc):
    nr, nc = r + dr, c + dc
    if nr < 0 or nr >= HEIGHT or nc < 0 or nc >= WIDTH:
        return False
    if kinds[nr, nc] != FREE and kinds[nr, nc] != DOOR:
        return False
    return not (dr != 0 and dc != 0 and (kinds[nr, nc] == DOOR or kinds[r, c] == DOOR))


@cached_njit()
def find_ways(kinds, row, column, away, first, queue):
    """Fill `away` with the fewest actions to each cell, −1 for none, and `first` with the one to begin with.

    A run goes on as long as it can; where it ends is as good as known. Kinds [21, 79] are uint8; `away`, `first`
    [21, 79] and the queue [21 · 79, 2] to work with are int16.
    """
    away[:] = -1
    first[:] = 0
    away[row, column] = 0
    queue[0, 0], queue[0, 1] = row, column
    start, end = 0, 1
    while start < end:
        r, c = queue[start]
        start += 1
        for d in range(8):
            dr, dc = DIRECTIONS[d]
            if not _allowed(kinds, r, c, dr, dc):
                continue
            nr, nc, action = r + dr, c + dc, _STEP + d
            for _ in range(2):
                if away[nr, nc] < 0:
                    away[nr, nc] = away[r, c] + 1
                    first[nr, nc] = action if away[r, c] == 0 else first[r, c]
                    queue[end, 0], queue[end, 1] = nr, nc
                    end += 1
                while _allowed(kinds, nr, nc, dr, dc):
                    nr, nc = nr + dr, nc + dc
                action = _RUN + d


@cached_njit()
def find_frontier(kinds, visited, unseen, ends):
    """Find where the map may go on.

    Args:
        kinds: [21, 79] uint8.
        visited: [21, 79] bool.
        unseen: [21, 79] int16, written: of each cell that can be entered and has not been, how many cells around it
            are not known, if one of them is straight beside it; else 0.
        ends: [21, 79] bool, written: cells that have been entered and have at most one neighbour to go on to.
    """
    for r in range(HEIGHT):
        for c in range(WIDTH):
            unseen[r, c] = 0
            ends[r, c] = False
            if kinds[r, c] != FREE and kinds[r, c] != DOOR:
                continue
            unknown = beside = neighbours = 0
            for d in range(8):
                nr, nc = r + DIRECTIONS[d, 0], c + DIRECTIONS[d, 1]
                if 0 <= nr < HEIGHT and 0 <= nc < WIDTH:
                    if kinds[nr, nc] == UNKNOWN:
                        unknown += 1
                        beside += d < 4
                    elif kinds[nr, nc] != BLOCKED:
                        neighbours += 1
            if not visited[r, c]:
                unseen[r, c] = unknown if beside > 0 else 0
            else:
                ends[r, c] = neighbours <= 1
