"""TouchdownText: a panorama in words: a letter for the class of each patch, and the angle of each direction."""

from __future__ import annotations

import numpy as np

from magrounding.single.touchdown.layout import CLASSES, turn
from magrounding.spec import Field, Grid
from magrounding.text_view import POSITION, Occupant, TextView
from magrounding.vector import Observation

LETTERS = " ,#W=|LSTt.pRcKBNMb"
"""Signs of the classes."""
_SIGNS: dict[str, str] = dict(zip(CLASSES, LETTERS, strict=True))


class TouchdownText(TextView):
    """Every patch of the panorama is drawn; the agent is not on it, it looks at one of its columns."""

    def own_cell(self, seen: Observation) -> None:
        return None

    def sign(self, occupant: Occupant) -> str:
        return _SIGNS.get(self.word(occupant[0]), "")

    def is_scenery(self, grid: Grid, occupant: Occupant) -> bool:
        return True

    def field(self, field: Field, array: np.ndarray) -> list[str]:
        if field.name != POSITION:
            return super().field(field, array)
        row, column = array.tolist()
        return [f"looks at row {row}, column {column}"]

    def direction(self, column: int, seen: Observation) -> str:
        angle = round(turn(0.0, (column - int(seen[POSITION][1])) * 360 / self.spec.grid.width))
        side = f"{abs(angle)}° to the {'right' if angle > 0 else 'left'}" if angle else "straight on"
        return f"column {column}, {side}"
