"""The eight symmetries of a square board: a table solved for one cell serves all that look alike."""

from __future__ import annotations

import numpy as np


def symmetries(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tabulate the turns and reflections of a board of side × side = N cells.

    Symmetry k is the same turn or reflection on boards of every size, and number 0 changes nothing.

    Returns:
        turned: [8, N + 1] where each symmetry takes a cell; cell N stands for "nowhere" and stays.
        symmetry: [N] the symmetry that takes a cell to the representative of its orbit (the first that does).
        orbit: [N] which orbit that is.
        representatives: [orbits] the cells that represent them.
    """
    cells = side * side
    square = np.arange(cells).reshape(side, side)
    turned = np.stack([np.rot90(view, k).ravel() for view in (square, square.T) for k in range(4)])
    representatives, orbit = np.unique(turned.min(axis=0), return_inverse=True)
    nowhere = np.full((8, 1), cells)
    return np.concatenate([turned, nowhere], axis=1), turned.argmin(axis=0), orbit, representatives
