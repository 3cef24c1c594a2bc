"""A scripted explorer of NetHack, who knows what has been shown in the episode and nothing more.

It goes to gold, to stairs that lead down, or to where the map is not known yet, whichever fits the prompt and is near;
it fights what stands in its way, and kicks doors that are locked.
"""

from __future__ import annotations

import numpy as np

from magrounding.single.nethack.options import ACTIONS
from magrounding.single.nethack.ways import (
    BLOCKED,
    CLOSED_DOORS,
    DIRECTIONS,
    DOWN,
    FREE,
    GOLD,
    HOLE,
    KINDS,
    TRAP_DOOR,
    find_frontier,
    find_ways,
    stays,
)
from magrounding.single.nethack.words import BLANK, HEIGHT, HERO, WIDTH

MORE, GO_DOWN, KICK, SEARCH = (ACTIONS.index(name) for name in ("more", "down", "kick", "search"))
_STEP = ACTIONS.index("north")

MONSTERS = 381
"""Bound of the glyphs of monsters that are no pets."""
SHUNNED = frozenset({6, 9, 10, 27, 28, 55, 156, 157, 158, 159})
"""Monsters that harm an attacker: acid blob, cockatrice, gas spore, floating eye, jellies and molds."""

_STAIRS_WORTH = {"scout": 3, "score": 40, "gold": 10}
"""Additional actions of a way that stairs are worth, over a place at the edge of the map."""
_KICKS = 5
_FLOOR = BLANK + 19
_NEVER = 1e9
_PATIENCE = 2
"""Vain tries to enter a cell before it counts as blocked."""


class Expert:
    """The explorer's advice in one episode of a prompt of SILG's."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._depth = -1
        self._away, self._first = (np.zeros((HEIGHT, WIDTH), np.int16) for _ in range(2))
        self._unseen, self._ends = np.zeros((HEIGHT, WIDTH), np.int16), np.zeros((HEIGHT, WIDTH), np.bool_)
        self._queue = np.zeros((HEIGHT * WIDTH, 2), np.int16)
        self._begin_level()

    def _begin_level(self) -> None:
        self._map = np.full((HEIGHT, WIDTH), BLANK)
        self._visited = np.zeros((HEIGHT, WIDTH), np.bool_)
        self._failed: dict[tuple[int, int], int] = {}
        self._kicked: dict[tuple[int, int], int] = {}
        self._locked: tuple[int, int] | None = None
        self._place = (-1, -1)
        self._searched = np.zeros((HEIGHT, WIDTH), np.int16)

    def look(self, glyphs: np.ndarray, row: int, column: int, depth: int, message: str, action: int | None) -> None:
        """Take in what is shown now: glyphs [21, 79], where the agent is, the level's depth, and the game's message.

        At first no action has been played before.
        """
        if depth != self._depth:
            self._depth = depth
            self._begin_level()
        still = stays(glyphs)
        self._map[still] = glyphs[still]
        self._map[~still & (self._map == BLANK)] = _FLOOR  # a monster stands there
        self._glyphs, self._message = glyphs.copy(), message
        before, self._place = self._place, (row, column)
        self._walked(before)
        if self._map[row, column] == BLANK:
            self._map[row, column] = _FLOOR
        self._learn(before, action)

    def _walked(self, before: tuple[int, int]) -> None:
        """Remember where one has been: all cells of a straight way since the last look."""
        (r, c), (row, column) = before, self._place
        length = max(abs(row - r), abs(column - c))
        straight = r >= 0 and (row - r) % max(1, length) == 0 and (column - c) % max(1, length) == 0
        for k in range(length + 1 if straight else 1):
            step = k / max(1, length)
            self._visited[round(row + (r - row) * step), round(column + (c - column) * step)] = True

    def _learn(self, before: tuple[int, int], action: int | None) -> None:
        """Note what the last action has shown: ways that are blocked, and doors that are locked."""
        if action is None or not _STEP <= action < _STEP + 16 or before != self._place:
            return
        dr, dc = DIRECTIONS[(action - _STEP) % 8]
        ahead = int(before[0] + dr), int(before[1] + dc)
        if "This door is locked" in self._message:
            self._locked = ahead
        elif "direction" not in self._message and self._glyph(ahead) >= MONSTERS:
            self._failed[ahead] = self._failed.get(ahead, 0) + 1

    def _glyph(self, cell: tuple[int, int]) -> int:
        """Return the glyph of a cell; −1 beyond the map's edge, where another's moves may have led."""
        inside = 0 <= cell[0] < HEIGHT and 0 <= cell[1] < WIDTH
        return int(self._glyphs[cell]) if inside else -1

    def action(self) -> int:
        """Return the action to play."""
        if "In what direction" in self._message:
            return self._kick_where()
        if "Really attack" in self._message or "?" in self._message[-12:]:
            return MORE
        row, column = self._place
        if self._map[row, column] == DOWN:
            return GO_DOWN
        blow = self._strike()
        if blow is not None:
            return blow
        if self._door_to_kick():
            return KICK
        return self._go()

    def _strike(self) -> int | None:
        """Return a blow at a monster beside the agent that does not harm the attacker; None where there is none."""
        for d, (dr, dc) in enumerate(DIRECTIONS):
            cell = self._place[0] + int(dr), self._place[1] + int(dc)
            glyph = self._glyph(cell)
            if 0 <= glyph < MONSTERS and glyph != HERO and glyph not in SHUNNED and cell not in self._failed:
                return _STEP + d
        return None

    def _door_to_kick(self) -> bool:
        """Return whether a locked door is beside the agent, straight ahead, that may still give way."""
        if self._locked is None or self._map[self._locked] not in CLOSED_DOORS:
            return False
        apart = abs(self._locked[0] - self._place[0]) + abs(self._locked[1] - self._place[1])
        if apart != 1:
            return False
        kicks = self._kicked[self._locked] = self._kicked.get(self._locked, 0) + 1
        if kicks > _KICKS:
            self._failed[self._locked] = _PATIENCE
            self._locked = None
        return self._locked is not None

    def _kick_where(self) -> int:
        if self._locked is not None:
            for d in range(4):
                if tuple(self._place + DIRECTIONS[d]) == self._locked:
                    return _STEP + d
        return MORE

    def _go(self) -> int:
        """Return the first action towards the nearest target; or a search for hidden things."""
        kinds = KINDS[self._map]
        for cell, count in self._failed.items():
            if count >= _PATIENCE:
                kinds[cell] = BLOCKED
        for r, c in zip(*np.nonzero(np.isin(self._glyphs, tuple(SHUNNED))), strict=True):
            kinds[r, c] = BLOCKED
        kinds[self._place] = max(kinds[self._place], FREE)
        find_ways(kinds, *self._place, self._away, self._first, self._queue)
        find_frontier(kinds, self._visited, self._unseen, self._ends)
        reached = self._away > 0
        cost = np.full((HEIGHT, WIDTH), _NEVER)
        ends = (self._away >= 0) & self._ends
        cost[ends] = self._away[ends] + 40.0 + 4 * self._searched[ends]
        edge = reached & (self._unseen > 0)
        cost[edge] = self._away[edge] - np.minimum(self._unseen[edge], 5) * 0.2
        if self._prompt in ("gold", "score"):
            gold = reached & (self._map == GOLD)
            cost[gold] = self._away[gold] - 60.0
        down = reached & np.isin(self._map, (DOWN, TRAP_DOOR, HOLE))
        cost[down] = self._away[down] - float(_STAIRS_WORTH[self._prompt])
        target = int(cost.argmin())
        if cost.flat[target] < _NEVER and self._away.flat[target] > 0:
            return int(self._first.flat[target])
        self._searched[self._place] += 1
        if self._searched.sum() % 12 == 0:  # other cells may do after all
            self._failed.clear()
        return SEARCH
