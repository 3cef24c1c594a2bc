"""Memory layout of B rows: the arrays that the kernels share, and the names and numbers of what is in them."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

# Columns of Games.scalars [B, NUM_SCALARS] int64; WITH_MESSAGE: the agents began with messages.
SEED, EPISODE, STEP, DRAWS, WITH_MESSAGE, OUTCOME = range(6)  # the first three as `compiled`
NUM_SCALARS = 6

# Columns of Games.entities [B, E, NUM_COLUMNS] int16. Slots: agents, enemy, messages, goals, decoys.
# Y, X: upper left corner of its square, in half cells. KIND: number of ENTITIES. ROLE: what touching it means, for a
# decoy ENEMY. HOLDS, DONE: an agent carries a message, has done its part. TURN: [k] is the slot that comes k-th.
Y, X, PRESENT, KIND, ROLE, MOVEMENT, HOLDS, DONE, TURN = range(9)
NUM_COLUMNS = 9

ENEMY, MESSAGE, GOAL = range(3)
CHASING, FLEEING, IMMOVABLE, WANDERING = range(4)
UNKNOWN = WANDERING
"""Movement of entities about which the manual states none: they wander."""

STAY = 0
ACTION_NAMES = ("stay", "up", "down", "left", "right")
Y_STEP = np.array([0, -1, 1, 0, 0], np.int64)
X_STEP = np.array([0, 0, 0, -1, 1], np.int64)

SIZE = 10
CELL = 2
"""Half cells in a cell. An agent steps over a cell, an entity that chases or flees over half of one."""
EDGE = CELL * (SIZE - 1)
"""The largest Y and X."""
STARTING_CELLS = tuple((y, x) for y, x in product(range(SIZE), repeat=2) if 2 <= abs(y - 5) + abs(x - 5) <= 3)
"""Rows and columns around the middle, where entities are scattered in stages without places of their own."""

TEAMMATE_WIDTH = 3
"""Row, column and the inventory of a teammate."""
AGENT_WIDTH = 4
"""Numbers of each agent in a state."""


class Rules(NamedTuple):
    """The configuration, as the kernels read it.

    Attributes:
        agents: n, which is also the number of messages and of goals.
        decoys: decoys of the message and of the goal: 0 or 1 of each.
        occupants: K, occupants that a cell shows.
        statements: descriptions of a manual, which lie in rows of their own or all in one; 1 with `game_id`.
        max_cycles: limit of steps.
        delivers: a message has to be taken to a goal; else an agent's part is to reach the one or the other.
        wanders: entities step at random, over whole cells, and block one another.
        begins_with_message: how often in ten games the agents begin with messages.
        says_nothing: how often in a hundred a sentence is silent about movement.
        pools: a sentence is any of those that say "immovable" and those that are silent, and `says_nothing` counts not.
        pick_up: reward for taking a message, the taker's own.
        adds_up: every hostile contact of a step costs 1; else all of them together.
        mixed: a share of the games, `fixed_roles`, take their triples from the second table.
        reassigned: every sentence states another role.
        game_id: the manual is the symbols of enemy, message and goal.
        salt: of document keys.
        omission: how often a description is left out that the game does not need.
        fixed_roles: how often entities of a game never change roles, where `mixed`.
    """

    agents: int
    decoys: int
    occupants: int
    statements: int
    max_cycles: int
    delivers: bool
    wanders: bool
    begins_with_message: int
    says_nothing: int
    pools: bool
    pick_up: float
    adds_up: bool
    mixed: bool
    reassigned: bool
    game_id: bool
    salt: int
    omission: float
    fixed_roles: float


class Tables(NamedTuple):
    """Tables that episodes are generated from and described with.

    Attributes:
        triples, other_triples: [P, 3] kinds of enemy, message and goal.
        movements: [M, 5] of enemy, message, goal, message's decoy, goal's decoy.
        starts: [S, E, 2] rows and columns of all slots, or none: then the agents start in the middle, the entities
            on any of `cells`.
        cells: [C, 2] rows and columns.
        sentences: [R, L] int16.
        first, choices: [12, 3, 4], where in `sentences` those about a kind, role and movement are, and how many.
    """

    triples: np.ndarray
    other_triples: np.ndarray
    movements: np.ndarray
    starts: np.ndarray
    cells: np.ndarray
    sentences: np.ndarray
    first: np.ndarray
    choices: np.ndarray


class Views(NamedTuple):
    """Observations of B games: the arrays of `EnvSpec`, see `CompiledWorld`."""

    grid: np.ndarray
    position: np.ndarray
    manual: np.ndarray
    inventory: np.ndarray
    action_mask: np.ndarray
    teammates: np.ndarray


FIXED_ROLES = 0.25
"""Share of the games of `train` whose entities never change roles."""
ENTITIES = tuple("airplane mage dog bird fish scientist thief ship ball robot queen sword".split())
ROLES = ("enemy", "message", "goal")
MOVEMENTS = ("chasing", "fleeing", "immovable", "unknown")
"""Movements of an entity that a sentence may state; "unknown": none is stated."""

FIRST_SYMBOL = 2
"""The symbol of entity e is 2 + e. No symbol is a word, and nothing maps one to the other but the manual's use."""
ME_ID, ME_WITH_MESSAGE_ID, ALLY_ID, ALLY_WITH_MESSAGE_ID = 15, 16, 17, 18
FIRST_WORD = 19
