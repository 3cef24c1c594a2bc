"""View: the world's cells as an array that keeps up with minigrid's list of objects."""

from __future__ import annotations

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

from magrounding.single.babyai.sight import look, remember
from magrounding.single.babyai.words import CODE_TO_WORDS, COLOURS, OPAQUE, TYPES, VIEW, cell_code

_BORDER = VIEW - 1
_WALL = cell_code(TYPES.index("wall"), COLOURS.index("grey"), 0)
_EMPTY = cell_code(TYPES.index("empty"), 0, 0)


def _nothing() -> None:
    """Stands in for `gen_obs` of a game whose view is computed here."""


class View:
    """View of the agent of a game, which computes none of its own any more.

    Args:
        game: minigrid's game; its cells change by its own steps only.
    """

    def __init__(self, game: RoomGridLevel) -> None:
        game.gen_obs = _nothing  # pyright: ignore[reportAttributeAccessIssue]
        self._game = game
        # What lies outside the world looks like wall, as in minigrid.
        self._codes = np.full((game.height + 2 * _BORDER, game.width + 2 * _BORDER), _WALL, np.uint8)
        self._cells = np.zeros((VIEW, VIEW), np.uint8)
        self._visible = np.zeros((VIEW, VIEW), np.bool_)

    def reset(self) -> None:
        """Read all cells, after the game's reset."""
        grid = self._game.grid
        codes = [_EMPTY if thing is None else cell_code(*thing.encode()) for thing in grid.grid]
        inside = self._codes[_BORDER:-_BORDER, _BORDER:-_BORDER]
        inside[:] = np.array(codes, np.uint8).reshape(grid.height, grid.width)

    def update(self) -> None:
        """Read the cell in front of the agent again: the only one that an action can change."""
        x, y = self._game.front_pos
        thing = self._game.grid.get(x, y)
        self._codes[y + _BORDER, x + _BORDER] = _EMPTY if thing is None else cell_code(*thing.encode())

    def grid(self) -> np.ndarray:
        """`grid` [7, 7, 3] int16, a new array."""
        game, grid = self._game, np.empty((VIEW, VIEW, 3), np.int16)
        x, y = game.agent_pos
        thing = game.carrying
        carried = _EMPTY if thing is None else cell_code(*thing.encode())
        x, y, direction = int(x) + _BORDER, int(y) + _BORDER, int(game.agent_dir)
        look(self._codes, x, y, direction, carried, OPAQUE, CODE_TO_WORDS, self._cells, self._visible, grid)
        return grid

    def remember(self, known: np.ndarray) -> None:
        """Mark in `known` [width, height] bool, column before row, what the last `grid` showed."""
        x, y = self._game.agent_pos
        remember(self._visible, int(x), int(y), int(self._game.agent_dir), known)
