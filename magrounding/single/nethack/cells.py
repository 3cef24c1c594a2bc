"""Kinds of cells of NetHack's map, and the glyphs of what counts there."""

from __future__ import annotations

import numpy as np

from magrounding.single.nethack.words import BLANK

UNKNOWN, FREE, DOOR, BLOCKED = range(4)
"""Kinds of cells; no step into a door or out of it is diagonal."""

PATIENCE, KICKS = 2, 5
"""Vain tries to enter a cell, and kicks at a locked door, before it counts as blocked."""

DIRECTIONS = np.array([(-1, 0), (0, 1), (1, 0), (0, -1), (-1, 1), (1, 1), (1, -1), (-1, -1)])
"""Row and column of each, in the order of the actions."""

GOLD, _BOULDER = 2316, 2353
_OBJECTS, _END = 1906, 2446
_STATUES, _STATUES_END = 5595, 5976
_CORPSES, _CORPSES_END = 1144, 1525
DOWN, TRAP_DOOR, HOLE = BLANK + 24, BLANK + 55, BLANK + 54
CLOSED_DOORS = (BLANK + 15, BLANK + 16)


def _kinds() -> np.ndarray:
    """[5976] uint8, what the cell of a glyph is; that of a monster is nothing by itself."""
    kinds = np.full(_STATUES_END, FREE, np.uint8)
    kinds[BLANK] = UNKNOWN
    solid = (*range(1, 12), 17, 18, 32, 34, 37, 38, 41, *range(42, 54), *range(56, 64))  # walls, water, lava, traps
    kinds[[BLANK + k for k in solid]] = BLOCKED
    kinds[[BLANK + k for k in range(13, 17)]] = DOOR
    kinds[_BOULDER] = BLOCKED
    kinds[_STATUES:] = BLOCKED
    return kinds


KINDS = _kinds()


def stays(glyphs: np.ndarray) -> np.ndarray:
    """Return whether each glyph is of something that does not move: the map, a thing, a corpse or a statue."""
    still = (glyphs >= _OBJECTS) & (glyphs < _END)
    return still | (glyphs >= _STATUES) | ((glyphs >= _CORPSES) & (glyphs < _CORPSES_END))
