"""BabyAIText: what the agent of BabyAI sees, in words: from where it stands, as the view turns with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from magrounding.spec import Field
from magrounding.text_view import NOTHING, Occupant, TextView, way
from magrounding.vector import Observation
from magrounding.vocabulary import PAD

_FACES = ("right", "down", "left", "up")
_EMPTY = "empty"


class BabyAIText(TextView):
    """The agent stands in the middle of the view's last row and looks at the first; its own cell is what it carries."""

    own_is_inventory = True

    def own_cell(self, seen: Observation) -> tuple[int, int] | None:
        return self.spec.grid.own_cell

    def way(self, down: int, right: int) -> str:
        return way(down, right, ("in front", "behind", "to the left", "to the right"))

    def name(self, occupant: Occupant) -> str:
        kind, colour, state = occupant
        return " ".join(self.word(i) for i in (state, colour, kind) if i != PAD)

    def held(self, ids: Sequence[int]) -> str:
        return NOTHING if self.word(ids[0]) == _EMPTY else self.name(tuple(ids))

    def field(self, field: Field, array: np.ndarray) -> list[str]:
        if field.name == "displacement":
            down, right = array.tolist()
            moved = way(down, right, ("up", "down", "left", "right"))
            return [f"has come {moved}" if down or right else "is where it began"]
        return [f"faces {_FACES[int(array[0])]} in the maze"]
