"""The rules of BabyAI compiled over a batch: minigrid's step, view and checker of missions, on arrays.

Kernels find the same as minigrid's `step`, `gen_obs` and `verify`, cell by cell and step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.jit import cached_njit, inner_njit
from magrounding.single.babyai.options import ACTIONS
from magrounding.single.babyai.words import COLOURS, STATES, TYPES, VIEW, cell_code

BORDER = VIEW - 1
"""Cells of wall around the world: what lies outside looks like wall, as in minigrid."""
WALL = cell_code(TYPES.index("wall"), COLOURS.index("grey"), 0)
EMPTY = cell_code(TYPES.index("empty"), 0, 0)
NO_CLAUSE, GO_TO, OPEN, PICK_UP, PUT_NEXT = range(5)
"""Kinds of clauses."""
CLAUSES = 4
"""Clauses of a mission: two of its first part, which are to be fulfilled in any order, and two of what comes then."""
X, Y, DIRECTION, CARRIED, CARRIED_MARKS, STEPS, LIMIT, START_X, START_Y, NUM_SCALARS = range(10)
"""Columns of `World.scalars`; `CARRIED` is the code of a cell, EMPTY for nothing, and `CARRIED_MARKS` its marks."""

_LEFT, _RIGHT, _FORWARD, _PICKUP, _DROP, _TOGGLE, _ = range(len(ACTIONS))
_DOOR, _KEY, _BALL, _BOX = (TYPES.index(name) for name in ("door", "key", "ball", "box"))
_OPEN, _CLOSED, _LOCKED = range(len(STATES))
_NOTHING = -1


class World(NamedTuple):
    """State of B games in maps of S × S cells, borders included.

    Mark k of a thing says that it is one of those that description k of the mission means; a clause has two
    descriptions at most. Minigrid remembers where these things are, and looks for them again only when something is
    dropped: `places` are those memories, and `marks` are where the things are.

    Attributes:
        codes: [B, S, S] uint8, codes of cells (`words.cell_code`).
        marks, places: [B, S, S] uint8, a bit for each description.
        visible: [B, S, S] uint8, 1 for cells that are in sight.
        clauses: [B, 4, 3] uint8, kind of a clause, and the bits of what it is about and of what that is put next to.
        done: [B, 4] int16, 1 for clauses that are fulfilled.
        hands: [B, 4] int16, marks of what was carried when a clause was checked last; −1 for nothing.
        scalars: [B, NUM_SCALARS] int64.
    """

    codes: np.ndarray
    marks: np.ndarray
    places: np.ndarray
    visible: np.ndarray
    clauses: np.ndarray
    done: np.ndarray
    hands: np.ndarray
    scalars: np.ndarray

    @classmethod
    def allocate(cls, num_envs: int, side: int) -> World:
        """Return the state of B worlds of side × side cells, in which nothing is."""
        side += 2 * BORDER
        codes, marks, places, visible = np.zeros((4, num_envs, side, side), np.uint8)
        done, hands = np.zeros((2, num_envs, CLAUSES), np.int16)
        clauses = np.zeros((num_envs, CLAUSES, 3), np.uint8)
        scalars = np.zeros((num_envs, NUM_SCALARS), np.int64)
        return cls(codes, marks, places, visible, clauses, done, hands, scalars)


class Seen(NamedTuple):
    """Observations of B games, [B, 1, …] int16."""

    grid: np.ndarray
    direction: np.ndarray
    displacement: np.ndarray


@cached_njit()
def play(actions, held, opaque, words, world, seen, out):
    """Play a step of every row that is not held, and show it; see `look` for `opaque` and `words`.

    Args:
        actions: [B] int64.
        held: [B] bool.
        out: `StepBuffers`, of which all but agents that are alive, actions that are illegal and documents are written.
    """
    for b in range(actions.shape[0]):
        reward, won, timed_out, length = 0.0, False, False, 0
        if not held[b]:
            scalars = world.scalars[b]
            scalars[STEPS] += 1
            length = scalars[STEPS]
            _act(actions[b], world.codes[b], world.marks[b], world.places[b], scalars)
            won = _fulfilled(actions[b], world, b)
            timed_out = not won and length >= scalars[LIMIT]
            if won:
                reward = 1 - 0.9 * (length / scalars[LIMIT])
            look(b, opaque, words, world, seen)
        out.rewards[b, 0] = out.returns[b, 0] = reward  # nothing is paid before the end
        out.terminated[b, 0] = out.won[b] = out.score[b] = won
        out.truncated[b, 0], out.done[b], out.length[b] = timed_out, won or timed_out, length


@cached_njit()
def look(b, opaque, words, world, seen):
    """Write what the agent of a row sees.

    Light enters at the agent's cell and runs up row by row, in each row first to the right and then to the left: a lit
    cell that hides nothing lights the next one in its row, and the cells above both (minigrid's `process_vis`).

    Args:
        b: number of the row.
        opaque: [codes] bool.
        words: [codes, 3] int16.
    """
    codes, visible, scalars, grid = world.codes[b], world.visible[b], world.scalars[b], seen.grid[b, 0]
    x, y, direction = scalars[X], scalars[Y], scalars[DIRECTION]
    ahead_x, ahead_y = _ahead(direction)  # so that (-ahead_y, ahead_x) is a step to the right
    half, last = VIEW // 2, VIEW - 1
    visible[:] = 0
    visible[y, x] = 1
    for row in range(last, -1, -1):
        far_x, far_y = x + ahead_x * (last - row), y + ahead_y * (last - row)
        for way in (1, -1):
            for k in range(last):
                aside = way * (k - half)
                at_x, at_y = far_x - ahead_y * aside, far_y + ahead_x * aside
                if visible[at_y, at_x] and not opaque[codes[at_y, at_x]]:
                    next_x, next_y = at_x - ahead_y * way, at_y + ahead_x * way
                    visible[next_y, next_x] = 1
                    if row > 0:
                        visible[next_y + ahead_y, next_x + ahead_x] = visible[at_y + ahead_y, at_x + ahead_x] = 1
        for column in range(VIEW):
            at_x, at_y = far_x - ahead_y * (column - half), far_y + ahead_x * (column - half)
            code = codes[at_y, at_x] if visible[at_y, at_x] else 0
            for k in range(3):
                grid[row, column, k] = words[code, k]
    for k in range(3):
        grid[last, half, k] = words[scalars[CARRIED], k]
    seen.direction[b, 0, 0] = direction
    seen.displacement[b, 0, 0], seen.displacement[b, 0, 1] = y - scalars[START_Y], x - scalars[START_X]


@inner_njit
def _ahead(direction):
    """Return the change of column and row of a step forward; 0 east, 1 south, 2 west, 3 north."""
    return int(direction == 0) - int(direction == 2), int(direction == 1) - int(direction == 3)


@inner_njit
def _act(action, codes, marks, places, scalars):
    """Do what an agent's action does in its world."""
    if action == _LEFT:
        scalars[DIRECTION] = (scalars[DIRECTION] + 3) % 4
    elif action == _RIGHT:
        scalars[DIRECTION] = (scalars[DIRECTION] + 1) % 4
    ahead_x, ahead_y = _ahead(scalars[DIRECTION])
    x, y = scalars[X] + ahead_x, scalars[Y] + ahead_y
    code, carried = np.int64(codes[y, x]), scalars[CARRIED]
    kind, state = code // (len(COLOURS) * len(STATES)), code % len(STATES)
    if action == _FORWARD:
        if code == EMPTY or (kind == _DOOR and state == _OPEN):
            scalars[X], scalars[Y] = x, y
    elif action == _PICKUP:
        if carried == EMPTY and kind in (_KEY, _BALL, _BOX):
            scalars[CARRIED], scalars[CARRIED_MARKS] = code, marks[y, x]
            codes[y, x], marks[y, x] = EMPTY, 0
    elif action == _DROP:
        if code == EMPTY and carried != EMPTY:
            codes[y, x], marks[y, x] = carried, scalars[CARRIED_MARKS]
            scalars[CARRIED], scalars[CARRIED_MARKS] = EMPTY, 0
        places[:] = marks
    elif action == _TOGGLE:
        if kind == _BOX:
            codes[y, x], marks[y, x] = EMPTY, 0
        elif kind == _DOOR and state == _LOCKED:
            if carried == (_KEY - _DOOR) * len(COLOURS) * len(STATES) + code - _LOCKED:  # a key of its colour
                codes[y, x] = code - _LOCKED + _OPEN
        elif kind == _DOOR:
            codes[y, x] = code - state + (_CLOSED if state == _OPEN else _OPEN)


@inner_njit
def _fulfilled(action, world, b):
    """Check the clauses whose turn it is, and tell whether the mission is fulfilled.

    Clauses of the second part are looked at once those of the first are done.
    """
    whole = True
    for k in range(CLAUSES):
        if k == CLAUSES // 2 and not whole:
            return False
        if world.clauses[b, k, 0] != NO_CLAUSE and not world.done[b, k]:
            world.done[b, k] = _clause_fulfilled(action, world, b, k)
            whole = whole and world.done[b, k] != 0
    return whole


@inner_njit
def _clause_fulfilled(action, world, b, k):
    """Tell whether a clause is fulfilled by the action that was played last."""
    scalars, places = world.scalars[b], world.places[b]
    kind, meant, beside = world.clauses[b, k, 0], world.clauses[b, k, 1], world.clauses[b, k, 2]
    ahead_x, ahead_y = _ahead(scalars[DIRECTION])
    x, y = scalars[X] + ahead_x, scalars[Y] + ahead_y
    if kind == GO_TO:
        return places[y, x] & meant != 0
    if kind == OPEN:
        return action == _TOGGLE and world.marks[b, y, x] & meant != 0 and world.codes[b, y, x] % len(STATES) == _OPEN
    carries, before = scalars[CARRIED] != EMPTY, world.hands[b, k]
    world.hands[b, k] = scalars[CARRIED_MARKS] if carries else _NOTHING
    if kind == PICK_UP:
        return action == _PICKUP and before == _NOTHING and scalars[CARRIED_MARKS] & meant != 0
    if action != _DROP or carries or before == _NOTHING or before & meant == 0:
        return False
    return (places[y - 1, x] | places[y + 1, x] | places[y, x - 1] | places[y, x + 1]) & beside != 0
