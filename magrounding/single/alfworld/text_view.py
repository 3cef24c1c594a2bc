"""ALFWorldText: observations of ALFWorld in words."""

from __future__ import annotations

import numpy as np

from magrounding.spec import Grid
from magrounding.text_view import TextView


class ALFWorldText(TextView):
    """The rows of the grid are things in sight, which have no places."""

    def map(self, grid: Grid, array: np.ndarray, own: tuple[int, int] | None) -> list[str]:
        return self.text(array)
