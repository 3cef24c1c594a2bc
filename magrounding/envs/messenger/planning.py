"""Best moves: those of the greatest expected chances one step ahead, after the division of messages and goals."""

import numpy as np
from numba import njit

from magrounding.envs.assignment import IMPOSSIBLE, assign
from magrounding.envs.messenger.arrays import (
    CELL,
    DONE,
    EDGE,
    ENEMY,
    GOAL,
    HOLDS,
    MESSAGE,
    MOVEMENT,
    PRESENT,
    ROLE,
    SIZE,
    STAY,
    X_STEP,
    Y_STEP,
    X,
    Y,
)
from magrounding.envs.messenger.dynamics import can_move, wrong_role
from magrounding.envs.messenger.pursuit import add_reaction_odds, stride
from magrounding.jit import cached_njit, inner_njit

EQUAL = np.float32(0.999)
"""Moves whose value is at least this share of the best one's are as good: a tenth of what a step costs."""
FAINT = 1e-30
"""Chances as slim as this or slimmer are all alike, and better than an entity that is not there."""
WIDTH = EDGE + 1
"""Places of a row."""


@cached_njit(nogil=True)
def label(games, rules, tables, entities, labels):
    """Label every agent's best moves, after the division of messages and goals of least total cost.

    The odds of an entity's moves do not depend on what the agents do now, as entities choose on the old state. Each
    agent compares its own moves by the expectation of its chances over those moves, of which `tables` is the `Pursuit`.
    `labels` [B, n, 5] bool are filled for the rows `games` [R].
    """
    n, slots = rules.agents, entities.shape[1]
    places, odds = np.zeros((slots, 5), np.int64), np.zeros((slots, 5), np.float32)
    here, still = np.zeros((slots, 1), np.int64), np.ones((slots, 1), np.float32)
    costs, choice = np.zeros((n, n)), np.zeros(n, np.int64)
    target, value = np.zeros(n, np.int64), np.zeros(5, np.float32)
    for b in games:
        board = entities[b]
        for e in range(n, slots):
            here[e, 0] = board[e, Y] * WIDTH + board[e, X]
        for role in (MESSAGE, GOAL):
            _divide(role, rules, tables, board, here, still, costs, choice, target)
        _predict_moves(n, board, places, odds)
        for a in range(n):
            most = np.float32(0)
            for move in range(5):
                value[move] = -1
                if can_move(board, a, move):
                    value[move] = 0
                    if not board[a, DONE]:
                        cell = _cell(board, a, move)
                        value[move] = _chances(cell, target[a], board[a, HOLDS], rules, tables, board, places, odds)
                    most = max(most, value[move])
            for move in range(5):
                labels[b, a, move] = value[move] >= most * EQUAL


@njit(inline="always")
def _cell(board, a, move):
    """The cell to which a move leads an agent."""
    return (board[a, Y] // CELL + Y_STEP[move]) * SIZE + board[a, X] // CELL + X_STEP[move]


@njit(inline="always")
def _needs(board, a, role):
    """Tell whether an agent now has to touch an entity of this role, MESSAGE or GOAL."""
    return not board[a, DONE] and (role == GOAL) == (board[a, HOLDS] != 0)


@inner_njit
def _divide(role, rules, tables, board, here, still, costs, choice, target):
    """target [n]: the slot of a message, or of a goal, for each agent that needs one, no slot twice.

    Their total cost is the least; a cost is minus the logarithm of an agent's chances. Who needs none costs nothing
    wherever it is put.
    """
    n, needed = rules.agents, 0
    first = n + 1 if role == MESSAGE else 2 * n + 1
    for a in range(n):
        needs = _needs(board, a, role)
        needed += needs
        for j in range(n):
            costs[a, j] = 0
            if needs and board[first + j, PRESENT]:
                cell = _cell(board, a, STAY)
                chances = _chances(cell, first + j, board[a, HOLDS], rules, tables, board, here, still)
                costs[a, j] = -np.log(max(chances, FAINT))
            elif needs:
                costs[a, j] = IMPOSSIBLE
    if needed:
        assign(costs, choice)
        for a in range(n):
            if _needs(board, a, role):
                target[a] = first + choice[a]


@inner_njit
def _predict_moves(n, board, places, odds):
    """Fill places [E, 5] and odds [E, 5] of each entity's next moves: it reacts on the nearest agent at work.

    Where several are as near, on any of them. That entities who wander block one another is left out.
    """
    odds[:] = 0
    for e in range(n, len(board)):
        y, x, movement = np.int64(board[e, Y]), np.int64(board[e, X]), board[e, MOVEMENT]
        for move in range(5):
            places[e, move] = (y + stride(movement) * Y_STEP[move]) * WIDTH + x + stride(movement) * X_STEP[move]
        least, ties = 1 << 30, 0
        for a in range(n):
            if not board[a, DONE]:
                distance = abs(board[a, Y] - y) + abs(board[a, X] - x)
                if distance < least:
                    least, ties = distance, 0
                ties += distance == least
        for a in range(n):
            agent_y, agent_x = np.int64(board[a, Y]), np.int64(board[a, X])
            if not board[a, DONE] and abs(agent_y - y) + abs(agent_x - x) == least:
                add_reaction_odds(y, x, agent_y, agent_x, movement, EDGE, np.float32(1) / np.float32(ties), odds[e])


@inner_njit
def _chances(cell, target, holds, rules, tables, board, places, odds):
    """Expected chances of an agent to touch its target before anything hostile, once the entities have moved.

    Hostile entities are looked up one at a time, as a table knows them, and put together as if they were independent
    but for the target: s · Π_h p_h / s, with s the chance to touch it with no other entity about and p_h that beside h.
    With one hostile entity nothing is lost.

    Args:
        cell: where the agent goes.
        target: slot.
        holds: whether it has a message.
        rules, tables, board: as in `label`; the game's [E, NUM_COLUMNS].
        places, odds: [E, moves] where entities go, and how likely.
    """
    n, total = rules.agents, np.float32(0)
    turn, r = tables.turned[tables.symmetry[cell]], tables.orbit[cell]
    no_enemy, wrong = turn.shape[0] - 1, wrong_role(holds, rules.delivers)
    aim = board[target, MOVEMENT] - tables.first
    for move in range(odds.shape[1]):
        if odds[target, move] == 0:
            continue
        t = turn[places[target, move]]
        alone = tables.value[aim, 0, r, t, no_enemy]
        worth = alone
        for h in range(n, len(board)):
            if board[h, PRESENT] and (board[h, ROLE] == ENEMY or board[h, ROLE] == wrong):
                row, mean = tables.value[aim, board[h, MOVEMENT] - tables.first, r, t], np.float32(0)
                for reply in range(odds.shape[1]):
                    if odds[h, reply] > 0:
                        mean += odds[h, reply] * row[turn[places[h, reply]]]
                worth *= mean / alone
        total += odds[target, move] * worth
    return total
