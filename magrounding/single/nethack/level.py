"""Level: what an episode has shown of a level of NetHack, and what its moves have found out there."""

from __future__ import annotations

from collections import Counter

import numpy as np

from magrounding.single.nethack.options import ACTIONS
from magrounding.single.nethack.words import (
    BEEN,
    BLANK,
    CLOSED_DOORS,
    DIRECTIONS,
    HEIGHT,
    KICKS,
    LOCKED,
    PATIENCE,
    REFUSED,
    SHUT,
    UNMARKED,
    WIDTH,
    stays,
)

MONSTERS = 381
"""Bound of the glyphs of monsters that are no pets."""

FLOOR = BLANK + 19
STEP, KICK = ACTIONS.index("north"), ACTIONS.index("kick")


class Level:
    """The level that the agent is on, as the episode has shown it since it came there.

    Attributes:
        depth: of the level; −1 before the first look.
        map: [21, 79] glyphs of what does not move; floor where only a monster has been seen.
        visited: [21, 79] bool, cells where the agent has been.
        vain: cell → vain tries to enter it.
        locked: the cell of a door that was found locked last; None before.
        place: row and column of the agent.
        glyphs: [21, 79], shown last.
    """

    def __init__(self) -> None:
        self.depth = -1
        self._begin()

    def _begin(self) -> None:
        self.map = np.full((HEIGHT, WIDTH), BLANK)
        self.visited = np.zeros((HEIGHT, WIDTH), np.bool_)
        self.vain: Counter[tuple[int, int]] = Counter()
        self.locked: tuple[int, int] | None = None
        self.place = (-1, -1)

    def look(
        self, glyphs: np.ndarray, row: int, column: int, depth: int, message: str, action: int | None = None
    ) -> bool:
        """Take in what is shown now; whether it is another level than before.

        Args:
            glyphs: [21, 79].
            row, column: of the agent.
            depth: of the level.
            message: of the game.
            action: played before; None at first.
        """
        another = depth != self.depth
        if another:
            self.depth = depth
            self._begin()
        still = stays(glyphs)
        self.map[still] = glyphs[still]
        self.map[~still & (self.map == BLANK)] = FLOOR  # a monster stands there
        self.glyphs = glyphs.copy()
        before, self.place = self.place, (row, column)
        self._walk(before)
        if self.map[row, column] == BLANK:
            self.map[row, column] = FLOOR
        self._learn(before, action, message)
        return another

    def _walk(self, before: tuple[int, int]) -> None:
        """Remember where the agent has been: all cells of a straight way since the last look."""
        (r, c), (row, column) = before, self.place
        length = max(abs(row - r), abs(column - c))
        straight = r >= 0 and (row - r) % max(1, length) == 0 and (column - c) % max(1, length) == 0
        for k in range(length + 1 if straight else 1):
            step = k / max(1, length)
            self.visited[round(row + (r - row) * step), round(column + (c - column) * step)] = True

    def _learn(self, before: tuple[int, int], action: int | None, message: str) -> None:
        """Note what the last action has shown: ways that are blocked, and doors that are locked."""
        if action == KICK and self.locked is not None and "direction" not in message:  # the game refused to kick
            self.vain[self.locked] += 1
        if action is None or not STEP <= action < STEP + 16 or before != self.place:
            return
        dr, dc = DIRECTIONS[(action - STEP) % 8]
        ahead = int(before[0] + dr), int(before[1] + dc)
        if "This door is locked" in message:
            self.locked = ahead
        elif "direction" not in message and self.glyph(ahead) >= MONSTERS:
            self.vain[ahead] += 1
        if self.locked is not None and self.map[self.locked] not in CLOSED_DOORS:  # the kick has opened it
            del self.vain[self.locked]
            self.locked = None

    def glyph(self, cell: tuple[int, int]) -> int:
        """Return the glyph of a cell; −1 beyond the map's edge, where another's moves may have led."""
        inside = 0 <= cell[0] < HEIGHT and 0 <= cell[1] < WIDTH
        return int(self.glyphs[cell]) if inside else -1

    def marks(self) -> np.ndarray:
        """Return what the agent's own moves have found out of each cell, [21, 79], see `words.MARKS`."""
        marks = np.where(self.visited, BEEN, UNMARKED)
        for cell, tries in self.vain.items():
            marks[cell] = SHUT if tries >= PATIENCE else REFUSED
        if self.locked is not None and self.map[self.locked] in CLOSED_DOORS:
            marks[self.locked] = LOCKED if self.vain[self.locked] < KICKS else SHUT
        return marks

    def known(self) -> np.ndarray:
        """Return which cells [21, 79] have been seen: what shows, and all that is beside where the agent has been."""
        known, beside = self.glyphs != BLANK, np.pad(self.visited, 1)
        for down in range(3):
            for right in range(3):
                known |= beside[down : down + HEIGHT, right : right + WIDTH]
        return known
