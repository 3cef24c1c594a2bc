"""Kernels that play a step: entities move, then the agents, then contacts are resolved."""

import numpy as np
from numba import njit

from magrounding.envs.compiled import LOST, RUNNING, TIMED_OUT, WON, draw_turns
from magrounding.envs.messenger.arrays import (
    CELL,
    CHASING,
    DONE,
    DRAWS,
    EDGE,
    ENEMY,
    FLEEING,
    GOAL,
    HOLDS,
    MESSAGE,
    MOVEMENT,
    OUTCOME,
    PRESENT,
    ROLE,
    STEP,
    TURN,
    X_STEP,
    Y_STEP,
    X,
    Y,
)
from magrounding.jit import inner_njit
from magrounding.seeding import DYNAMICS, below

WANDERS = 4, 11
"""Odds of a step by a wandering entity: 4 in 11, the same in each of the four directions."""


@inner_njit
def play_games(first, last, actions, rules, games, out):
    """Play a step of games first … last-1 and write rewards, flags and outcomes (rules: docstring of the package)."""
    n = rules.agents
    for b in range(first, last):
        scalars, entities, key = games.scalars[b], games.entities[b], games.keys[b, DYNAMICS]
        scalars[STEP] += 1
        if rules.wanders:
            draw_turns(n, n, entities.shape[0], TURN, key, scalars, entities)
            for turn in range(n, entities.shape[0]):
                _wander(entities[turn, TURN], n, key, scalars, entities)
        else:
            for e in range(n, entities.shape[0]):
                if entities[e, PRESENT] and entities[e, MOVEMENT] <= FLEEING:
                    _chase_or_flee(e, n, key, scalars, entities)
        for a in range(n):
            move = actions[b, a]
            legal = can_move(entities, a, move)
            out.illegal[b, a] = not legal
            out.rewards[b, a] = 0
            if legal:
                entities[a, Y] += CELL * Y_STEP[move]
                entities[a, X] += CELL * X_STEP[move]
        hostile = _touch(b, rules, key, scalars, entities, out.rewards)
        _judge(b, rules, hostile, scalars, entities, out)


@inner_njit
def can_move(entities, a, move):
    """Tell whether an agent's move does something: not off the board, and only staying once its part is done."""
    y, x = entities[a, Y] + CELL * Y_STEP[move], entities[a, X] + CELL * X_STEP[move]
    return move == 0 or (not entities[a, DONE] and y >= 0 and y <= EDGE and x >= 0 and x <= EDGE)


@inner_njit
def _wander(e, n, key, scalars, entities):
    """Step over a cell in a random direction, if the board and the other entities let it, or stay."""
    scalars[DRAWS] += 1
    draw = below(key, scalars[DRAWS], WANDERS[1])
    if not entities[e, PRESENT] or draw >= WANDERS[0]:
        return
    y, x = entities[e, Y] + CELL * Y_STEP[draw + 1], entities[e, X] + CELL * X_STEP[draw + 1]
    if y < 0 or y > EDGE or x < 0 or x > EDGE:
        return
    for other in range(n, entities.shape[0]):
        if entities[other, PRESENT] and entities[other, Y] == y and entities[other, X] == x:
            return
    entities[e, Y] = y
    entities[e, X] = x


@inner_njit
def _chase_or_flee(e, n, key, scalars, entities):
    """Move half a cell nearer to the nearest agent at work, or away from it; over the edge means to stay."""
    y, x = np.int64(entities[e, Y]), np.int64(entities[e, X])
    nearest, best, ties = -1, np.int64(1 << 30), 0
    for a in range(n):
        if not entities[a, DONE]:
            distance = abs(entities[a, Y] - y) + abs(entities[a, X] - x)
            if distance < best:
                nearest, best, ties = a, distance, 1
            elif distance == best:
                ties += 1
                scalars[DRAWS] += 1
                if below(key, scalars[DRAWS], ties) == 0:
                    nearest = a
    if nearest < 0:
        return
    sign = 1 if entities[e, MOVEMENT] == CHASING else -1
    down, right = entities[nearest, Y] - y, entities[nearest, X] - x
    count = 0
    for move in range(1, 5):
        count += gains(move, down, right, best, sign)
    scalars[DRAWS] += 1
    pick = below(key, scalars[DRAWS], count if count else 4)
    for move in range(1, 5):
        if not count or gains(move, down, right, best, sign):
            if pick == 0:
                y, x = y + Y_STEP[move], x + X_STEP[move]
                if y >= 0 and y <= EDGE and x >= 0 and x <= EDGE:
                    entities[e, Y] = y
                    entities[e, X] = x
                return
            pick -= 1


@njit(inline="always")
def gains(move, down, right, distance, sign):
    """Tell whether half a cell in this direction leads nearer to what is so far off (sign 1), or away from it (−1)."""
    return sign * (distance - abs(down - Y_STEP[move]) - abs(right - X_STEP[move])) > 0


@njit(inline="always")
def _meet(entities, a, e):
    """Tell whether the square of an agent and that of an entity that is present overlap."""
    down, right = entities[a, Y] - entities[e, Y], entities[a, X] - entities[e, X]
    return entities[e, PRESENT] and abs(down) < CELL and abs(right) < CELL


@njit(inline="always")
def wrong_role(holds, delivers):
    """The role that an agent with or without a message must not touch, beside ENEMY, or −1.

    With a message in hand another message means nothing, or, where a goal is all there is to reach, a mistake.
    """
    return MESSAGE if holds and not delivers else GOAL if not holds else -1


@inner_njit
def _touch(b, rules, key, scalars, entities, rewards):
    """Resolve all contacts, enemies first, then agent by agent in a random order; the number of hostile ones."""
    n, hostile = rules.agents, 0
    for a in range(n):
        for e in range(n, entities.shape[0]):
            if not entities[a, DONE] and entities[e, ROLE] == ENEMY:
                hostile += _meet(entities, a, e)
    if n > 1:
        draw_turns(0, 0, n, TURN, key, scalars, entities)
    for turn in range(n):
        a = entities[turn, TURN] if n > 1 else 0
        if entities[a, DONE]:
            continue
        holds = entities[a, HOLDS]
        wrong = wrong_role(holds, rules.delivers)
        for e in range(n, entities.shape[0]):
            if entities[e, ROLE] == wrong:
                hostile += _meet(entities, a, e)
        if hostile:
            continue
        right = GOAL if holds else MESSAGE
        for e in range(n, entities.shape[0]):
            if entities[e, ROLE] == right and _meet(entities, a, e):
                entities[e, PRESENT] = 0
                if not holds:
                    entities[a, HOLDS] = 1
                    rewards[b, a] += rules.pick_up
                entities[a, DONE] = right == GOAL or not rules.delivers
                break
    return hostile


@inner_njit
def _judge(b, rules, hostile, scalars, entities, out):
    """Outcome, rewards and flags at the end of a step."""
    n, step = rules.agents, scalars[STEP]
    done = 0
    for a in range(n):
        done += entities[a, DONE]
    lost = hostile > 0
    won = done == n and not lost
    timed_out = not won and not lost and step >= rules.max_cycles
    scalars[OUTCOME] = WON if won else LOST if lost else TIMED_OUT if timed_out else RUNNING
    for a in range(n):
        if lost:
            out.rewards[b, a] = -hostile if rules.adds_up else -1
        elif won:
            out.rewards[b, a] = 1
        elif timed_out:
            out.rewards[b, a] = -1
        out.returns[b, a] = out.rewards[b, a] + (out.returns[b, a] if step > 1 else np.float32(0))
        out.terminated[b, a] = won or lost
        out.truncated[b, a] = timed_out
        out.alive[b, a] = True
    out.done[b] = won or lost or timed_out
    out.won[b] = won
    out.length[b] = step
