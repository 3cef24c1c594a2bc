"""A scripted explorer of NetHack, who knows what has been shown in the episode and nothing more.

It goes to gold, to stairs that lead down, or to where the map is not known yet, whichever fits the prompt and is near;
it fights what stands in its way, and kicks doors that are locked.
"""

from __future__ import annotations

import numpy as np

from magrounding.jit import cached_njit
from magrounding.single.nethack.level import KICK, MONSTERS, STEP, Level
from magrounding.single.nethack.options import ACTIONS
from magrounding.single.nethack.words import (
    BLOCKED,
    CLOSED_DOORS,
    DIRECTIONS,
    DOOR,
    DOWN,
    FREE,
    GOLD,
    HEIGHT,
    HERO,
    HOLE,
    KICKS,
    KINDS,
    PATIENCE,
    TRAP_DOOR,
    UNKNOWN,
    WIDTH,
)

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


MORE, GO_DOWN, SEARCH = (ACTIONS.index(name) for name in ("more", "down", "search"))

SHUNNED = frozenset({6, 9, 10, 27, 28, 55, 156, 157, 158, 159})
"""Monsters that harm an attacker: acid blob, cockatrice, gas spore, floating eye, jellies and molds."""

_STAIRS_WORTH = {"scout": 3, "score": 40, "gold": 10}
"""Additional actions of a way that stairs are worth, over a place at the edge of the map."""
_NEVER = 1e9


class Expert:
    """The explorer's advice in one episode of a prompt of SILG's."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self.level = Level()
        self._away, self._first = (np.zeros((HEIGHT, WIDTH), np.int16) for _ in range(2))
        self._unseen, self._ends = np.zeros((HEIGHT, WIDTH), np.int16), np.zeros((HEIGHT, WIDTH), np.bool_)
        self._queue = np.zeros((HEIGHT * WIDTH, 2), np.int16)

    def look(self, glyphs: np.ndarray, row: int, column: int, depth: int, message: str, action: int | None) -> None:
        """Take in what is shown now; arguments as of `Level.look`."""
        self._message = message
        if self.level.look(glyphs, row, column, depth, message, action):
            self._searched = np.zeros((HEIGHT, WIDTH), np.int16)

    def action(self) -> int:
        """Return the action to play."""
        if "In what direction" in self._message:
            return self._kick_where()
        if "Really attack" in self._message or "?" in self._message[-12:]:
            return MORE
        if self.level.map[self.level.place] == DOWN:
            return GO_DOWN
        blow = self._strike()
        if blow is not None:
            return blow
        if self._door_to_kick():
            return KICK
        return self._go()

    def _strike(self) -> int | None:
        """Return a blow at a monster beside the agent that does not harm the attacker; None where there is none."""
        row, column = self.level.place
        for d, (dr, dc) in enumerate(DIRECTIONS):
            cell = row + int(dr), column + int(dc)
            glyph = self.level.glyph(cell)
            if 0 <= glyph < MONSTERS and glyph != HERO and glyph not in SHUNNED and cell not in self.level.vain:
                return STEP + d
        return None

    def _door_to_kick(self) -> bool:
        """Return whether a locked door is beside the agent, straight ahead, that may still give way."""
        level, door = self.level, self.level.locked
        if door is None or level.map[door] not in CLOSED_DOORS:
            return False
        if abs(door[0] - level.place[0]) + abs(door[1] - level.place[1]) != 1:
            return False
        return level.vain[door] < KICKS

    def _kick_where(self) -> int:
        if self.level.locked is not None:
            for d in range(4):
                if tuple(self.level.place + DIRECTIONS[d]) == self.level.locked:
                    return STEP + d
        return MORE

    def _go(self) -> int:
        """Return the first action towards the nearest target; or a search for hidden things."""
        level = self.level
        kinds = KINDS[level.map]
        for cell, count in level.vain.items():
            if count >= PATIENCE:
                kinds[cell] = BLOCKED
        for r, c in zip(*np.nonzero(np.isin(level.glyphs, tuple(SHUNNED))), strict=True):
            kinds[r, c] = BLOCKED
        kinds[level.place] = max(kinds[level.place], FREE)
        find_ways(kinds, *level.place, self._away, self._first, self._queue)
        find_frontier(kinds, level.visited, self._unseen, self._ends)
        reached = self._away > 0
        cost = np.full((HEIGHT, WIDTH), _NEVER)
        ends = (self._away >= 0) & self._ends
        cost[ends] = self._away[ends] + 40.0 + 4 * self._searched[ends]
        edge = reached & (self._unseen > 0)
        cost[edge] = self._away[edge] - np.minimum(self._unseen[edge], 5) * 0.2
        if self._prompt in ("gold", "score"):
            gold = reached & (level.map == GOLD)
            cost[gold] = self._away[gold] - 60.0
        down = reached & np.isin(level.map, (DOWN, TRAP_DOOR, HOLE))
        cost[down] = self._away[down] - float(_STAIRS_WORTH[self._prompt])
        target = int(cost.argmin())
        if cost.flat[target] < _NEVER and self._away.flat[target] > 0:
            return int(self._first.flat[target])
        self._searched[level.place] += 1
        if self._searched.sum() % 12 == 0:  # other cells may do after all
            level.vain.clear()
        return SEARCH
