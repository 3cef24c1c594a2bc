"""The agent's view, as a kernel: the same cells and the same shadows as minigrid's `gen_obs`."""

from __future__ import annotations

from magrounding.jit import cached_njit


@cached_njit()
def _ahead(direction):
    """Return the change of column and row of a step forward; 0 east, 1 south, 2 west, 3 north."""
    return int(direction == 0) - int(direction == 2), int(direction == 1) - int(direction == 3)


@cached_njit()
def look(codes, x, y, direction, carried, opaque, words, cells, visible, grid):
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
def remember(visible, x, y, direction, known):
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
