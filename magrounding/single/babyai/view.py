"""View: the world's cells as an array that keeps up with minigrid's list of objects, and what the agent sees of them.

The kernels find the same cells and the same shadows as minigrid's `gen_obs`.
"""

from __future__ import annotations

import numpy as np
from minigrid.envs.babyai.core.roomgrid_level import RoomGridLevel

from magrounding.jit import cached_njit
from magrounding.single.babyai.words import CODE_TO_WORDS, COLOURS, OPAQUE, TYPES, VIEW, cell_code

_BORDER = VIEW - 1
_WALL = cell_code(TYPES.index("wall"), COLOURS.index("grey"), 0)
_EMPTY = cell_code(TYPES.index("empty"), 0, 0)


def _nothing() -> None:
    """Return nothing, in place of `gen_obs` of a game whose view is computed here."""


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
        _look(self._codes, x, y, direction, carried, OPAQUE, CODE_TO_WORDS, self._cells, self._visible, grid)
        return grid

    def remember(self, known: np.ndarray) -> None:
        """Mark in `known` [width, height] bool, column before row, what the last `grid` showed."""
        x, y = self._game.agent_pos
        _remember(self._visible, int(x), int(y), int(self._game.agent_dir), known)


@cached_njit()
def _ahead(direction):
    """Return the change of column and row of a step forward; 0 east, 1 south, 2 west, 3 north."""
    return int(direction == 0) - int(direction == 2), int(direction == 1) - int(direction == 3)


@cached_njit()
def _look(codes, x, y, direction, carried, opaque, words, cells, visible, grid):
    """Write the view of an agent at (x, y).

    Light enters at the agent's cell and runs up row by row, in each row first to the right and then to the left: a lit
    cell that hides nothing lights the next one in its row, and the cells above both (minigrid's `process_vis`).

    Args:
        codes: [rows, columns] uint8, the world's cells.
        x, y: column and row of the agent, at least 6 cells from each border of `codes`.
        direction: 0 east, 1 south, 2 west, 3 north.
        carried: code of what the agent carries; that of an empty cell for nothing.
        opaque: [codes] bool.
        words: [codes, 3] int16.
        cells, visible: [7, 7] uint8 and bool, written: codes of the view and which of them are lit.
        grid: [7, 7, 3] int16, written: their words.
    """
    size = cells.shape[0]
    half = size // 2
    ahead_x, ahead_y = _ahead(direction)
    for row in range(size):
        far = size - 1 - row
        for column in range(size):
            aside = column - half
            cells[row, column] = codes[y + ahead_y * far + ahead_x * aside, x + ahead_x * far - ahead_y * aside]
            visible[row, column] = False
    visible[size - 1, half] = True
    for row in range(size - 1, -1, -1):
        for column in range(size - 1):
            if visible[row, column] and not opaque[cells[row, column]]:
                visible[row, column + 1] = True
                if row > 0:
                    visible[row - 1, column + 1] = True
                    visible[row - 1, column] = True
        for column in range(size - 1, 0, -1):
            if visible[row, column] and not opaque[cells[row, column]]:
                visible[row, column - 1] = True
                if row > 0:
                    visible[row - 1, column - 1] = True
                    visible[row - 1, column] = True
    cells[size - 1, half] = carried
    for row in range(size):
        for column in range(size):
            code = cells[row, column] if visible[row, column] else 0
            for k in range(3):
                grid[row, column, k] = words[code, k]


@cached_njit()
def _remember(visible, x, y, direction, known):
    """Mark in `known` [columns, rows] bool what an agent at (x, y) sees: `visible` [7, 7] bool."""
    size = visible.shape[0]
    half = size // 2
    ahead_x, ahead_y = _ahead(direction)
    for row in range(size):
        far = size - 1 - row
        for column in range(size):
            if visible[row, column]:
                aside = column - half
                at_x = x + ahead_x * far - ahead_y * aside
                at_y = y + ahead_y * far + ahead_x * aside
                if 0 <= at_x < known.shape[0] and 0 <= at_y < known.shape[1]:
                    known[at_x, at_y] = True
