"""Stages as data."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from magrounding.envs.messenger.arrays import CHASING, FLEEING, IMMOVABLE, WANDERING


@dataclass(frozen=True)
class Stage:
    """Entities on the board, their movements and the words of manuals.

    Attributes:
        max_cycles: limit of steps.
        cells: [column, row] of where entities (and agents without a place of their own) begin.
        centre: the agents all begin in the middle, [5, 5]; else the one agent begins on one of `cells`.
        moves: "still", "wander" (at random) or "roles" (each kind chases, flees or stands, as the manual says).
        delivers: a message has to be taken to a goal; else a contact with either is the end of an agent's part.
        decoys: a decoy of the message and one of the goal, and a false statement.
        begins_with_message: how often in ten games the agents begin with messages.
        says_nothing: how often in a hundred a sentence is silent about movement. Where nothing moves, the corpus
            decides: of all sentences that say "immovable" or are silent each is as likely, in our own half and half.
        pick_up: reward for taking a message.
        team: rules of several agents: rewards of an end are ±1 for all.
    """

    max_cycles: int
    cells: tuple[tuple[int, int], ...]
    centre: bool = True
    moves: str = "still"
    delivers: bool = False
    decoys: bool = False
    begins_with_message: int = 0
    says_nothing: int = 50
    pick_up: float = 0.0
    team: bool = False

    def movements(self, new_dynamics: bool) -> np.ndarray:
        """[M, 5] of enemy, message, goal and of the two decoys, each differing from what it mimics and the other."""
        if self.moves != "roles":
            return np.full((1, 5), IMMOVABLE if self.moves == "still" else WANDERING, np.int64)
        kinds = CHASING, FLEEING, IMMOVABLE
        ways = product(kinds, repeat=3) if new_dynamics and not self.decoys else permutations(kinds)
        rows = []
        for enemy, message, goal in ways:
            decoys = [(m, g) for m, g in product(kinds, repeat=2) if m != message and g != goal and m != g]
            rows += [(enemy, message, goal, m, g) for m, g in (decoys if self.decoys else [(IMMOVABLE, IMMOVABLE)])]
        return np.array(rows, np.int64)

    def starts(self, agents: int) -> np.ndarray:
        """Return [S, slots, 2] rows and columns, or none where entities are to be scattered around the middle."""
        entities = 1 + 2 * agents + 2 * self.decoys
        middle = [(5, 5)] * agents if self.centre else []
        if self.team and agents != 2:
            return np.zeros((0, agents + entities, 2), np.int64)
        places = permutations(self.cells, entities if self.centre else entities + 1)
        return np.array([[(row, column) for column, row in (*middle, *chosen)] for chosen in places], np.int64)


STAGES = {
    "s1": Stage(max_cycles=4, cells=((5, 3), (3, 5), (7, 5), (5, 7)), begins_with_message=2),
    "s2": Stage(
        max_cycles=64,
        cells=((2, 2), (7, 2), (2, 7), (7, 7)),
        centre=False,
        moves="roles",
        delivers=True,
        says_nothing=15,
        pick_up=0.5,
    ),
    "s3": Stage(
        max_cycles=128,
        cells=((1, 6), (2, 1), (5, 4), (5, 9), (8, 1), (9, 6)),
        centre=False,
        moves="roles",
        delivers=True,
        decoys=True,
        says_nothing=0,
        pick_up=0.5,
    ),
}
"""MESSENGER (Hanjie et al. 2021)."""

_AROUND = ((4, 7), (6, 7), (5, 3), (3, 5), (7, 5))

TEAM_STAGES = {
    "s1": Stage(max_cycles=4, cells=_AROUND, begins_with_message=2, team=True),
    "s2": Stage(max_cycles=32, cells=_AROUND, moves="wander", begins_with_message=2, says_nothing=100, team=True),
    "s3": Stage(max_cycles=64, cells=_AROUND, moves="wander", delivers=True, says_nothing=100, pick_up=0.2, team=True),
    "s4": Stage(max_cycles=64, cells=_AROUND, moves="roles", delivers=True, says_nothing=0, pick_up=0.2, team=True),
}
"""Multi-agent MESSENGER (Ding et al. 2023); s4 is ours."""
