"""Kernels that play a step: all choose on the old state, then move one by one, and each arrival is resolved at once."""

import numpy as np
from numba import njit

from magrounding.envs.compiled import LOST, RUNNING, TIMED_OUT, WON, draw_turns
from magrounding.envs.rtfm.arrays import (
    COLUMN,
    COLUMN_STEP,
    DIED,
    DOWN,
    DRAWS,
    ELEMENT,
    ENGAGED,
    HELD,
    KILLS,
    LEFT,
    MOVE,
    OUTCOME,
    PRESENT,
    RIGHT,
    ROW,
    ROW_STEP,
    STAY,
    STEP,
    TARGET,
    TARGETS_LEFT,
    TURN,
    UP,
)
from magrounding.jit import inner_njit
from magrounding.seeding import DYNAMICS, below

CHASE_TENTHS = 6
"""Probability, in tenths, that a monster that moves chases."""
STEP_REWARD = np.float32(-0.02)


@inner_njit
def play_games(first, last, actions, rules, games, out):
    """Play a step of games first … last-1 and write rewards, flags and outcomes (rules: docstring of `envs.rtfm`)."""
    n, size = rules.agents, rules.size
    for b in range(first, last):
        scalars, entities, key = games.scalars[b], games.entities[b], games.keys[b, DYNAMICS]
        scalars[STEP] += 1
        for a in range(n):
            move = actions[b, a]
            illegal = entities[a, PRESENT] == 1 and not can_enter(
                entities[a, ROW] + ROW_STEP[move], entities[a, COLUMN] + COLUMN_STEP[move], size
            )
            entities[a, MOVE] = STAY if illegal else move
            entities[a, KILLS] = 0
            entities[a, DIED] = 0
            entities[a, ENGAGED] = 0
            out.illegal[b, a] = illegal
        move_all(rules, key, scalars, entities)
        judge(b, n, rules.max_cycles, rules.individual_death, scalars, entities, out)


@njit(inline="always")  # as a call it would be handed all of `rules` by value for every game: 6 % of a step of S1
def move_all(rules, key, scalars, entities):
    """Let monsters choose, then move all in turn, agents as their `MOVE` says; draws are those of `key`."""
    n, movers = rules.agents, rules.agents + rules.monsters
    turns = movers if rules.moving else n
    for m in range(n, turns):
        if entities[m, PRESENT]:
            entities[m, MOVE] = _choose_move(m, n, rules.size, rules.chase_squared, key, scalars, entities)
    if rules.letters:
        draw_turns(0, n, turns, TURN, key, scalars, entities)
        draw_turns(turns - n, 0, n, TURN, key, scalars, entities)
    else:
        draw_turns(0, 0, n, TURN, key, scalars, entities)
        draw_turns(n, n, turns, TURN, key, scalars, entities)
    for turn in range(turns):
        mover = entities[turn, TURN]
        if entities[mover, PRESENT] and entities[mover, MOVE] != STAY:
            _move(mover, n, movers, rules.leave_item, scalars, entities)


@njit(inline="always")
def can_enter(row, column, size):
    """Tell whether a cell is inside the ring of walls."""
    return row > 0 and row < size - 1 and column > 0 and column < size - 1  # chained comparisons compile to branches


@inner_njit
def _choose_move(m, n, size, chase_squared, key, scalars, entities):
    """With probability 0.6, and an agent in range, a move that brings the monster nearer to the nearest; else any."""
    row, column = entities[m, ROW], entities[m, COLUMN]
    nearest, best, ties = -1, np.int64(1 << 30), 0
    for a in range(n):
        if entities[a, PRESENT]:
            rows, columns = np.int64(entities[a, ROW] - row), np.int64(entities[a, COLUMN] - column)
            distance = rows * rows + columns * columns
            if distance < best:
                nearest, best, ties = a, distance, 1
            elif distance == best:
                ties += 1
                scalars[DRAWS] += 1
                if below(key, scalars[DRAWS], ties) == 0:
                    nearest = a
    scalars[DRAWS] += 2
    chases = below(key, scalars[DRAWS] - 1, 10) < CHASE_TENTHS
    if chases and nearest >= 0 and (chase_squared < 0 or best <= chase_squared):
        rows, columns = entities[nearest, ROW] - row, entities[nearest, COLUMN] - column
        vertical = UP if rows < 0 else DOWN
        horizontal = LEFT if columns < 0 else RIGHT
        if rows == 0:
            return horizontal
        if columns == 0:
            return vertical
        return vertical if below(key, scalars[DRAWS], 2) == 0 else horizontal
    count = 0
    for move in range(5):
        count += can_enter(row + ROW_STEP[move], column + COLUMN_STEP[move], size)
    pick = below(key, scalars[DRAWS], count)
    for move in range(5):
        if can_enter(row + ROW_STEP[move], column + COLUMN_STEP[move], size):
            if pick == 0:
                return move
            pick -= 1
    return STAY


@inner_njit
def _move(mover, n, movers, leave_item, scalars, entities):
    """Step into the next cell and resolve it. A stay meets nothing new: arrivals have been resolved already."""
    move = entities[mover, MOVE]
    row = entities[mover, ROW] + ROW_STEP[move]
    column = entities[mover, COLUMN] + COLUMN_STEP[move]
    entities[mover, ROW] = row
    entities[mover, COLUMN] = column
    if mover < n:
        _take_item(mover, row, column, movers, leave_item, entities)
        for m in range(n, movers):
            if entities[m, PRESENT] and entities[m, ROW] == row and entities[m, COLUMN] == column:
                _fight(mover, m, scalars, entities)
                if not entities[mover, PRESENT]:
                    return
    else:
        for turn in range(movers):
            a = entities[turn, TURN]
            if a < n and entities[a, PRESENT] and entities[a, ROW] == row and entities[a, COLUMN] == column:
                _fight(a, mover, scalars, entities)
                if not entities[mover, PRESENT]:
                    return


@inner_njit
def _take_item(a, row, column, movers, leave_item, entities):
    """Take the item that lies here; the one held before is destroyed, or left in its place."""
    for item in range(movers, entities.shape[0]):
        if entities[item, PRESENT] and entities[item, ROW] == row and entities[item, COLUMN] == column:
            held = entities[a, HELD]
            if held >= 0 and leave_item:
                entities[held, PRESENT] = 1
                entities[held, ROW] = row
                entities[held, COLUMN] = column
            entities[item, PRESENT] = 0
            entities[a, HELD] = item
            return


@inner_njit
def _fight(a, m, scalars, entities):
    """The item in hand decides: it beats the monster's element and kills it, anything else is the agent's death."""
    held = entities[a, HELD]
    if not entities[m, TARGET]:
        entities[a, ENGAGED] = 1
    if held >= 0 and entities[held, ELEMENT] == entities[m, ELEMENT]:
        entities[m, PRESENT] = 0
        if entities[m, TARGET]:
            entities[a, KILLS] += 1
            scalars[TARGETS_LEFT] -= 1
    else:
        entities[a, PRESENT] = 0
        entities[a, DIED] = 1


@njit(inline="always")
def is_lost(n, individual_death, entities):
    """Tell whether a step has lost the game: by a meeting with the distractor, or deaths."""
    living, died, engaged = 0, False, False
    for a in range(n):
        living += entities[a, PRESENT]
        died |= entities[a, DIED] == 1
        engaged |= entities[a, ENGAGED] == 1
    return engaged or living == 0 or (died and not individual_death)


@inner_njit
def judge(b, n, max_cycles, individual_death, scalars, entities, out):
    """Outcome, rewards and flags at the end of a step."""
    step, lost = scalars[STEP], is_lost(n, individual_death, entities)
    won = scalars[TARGETS_LEFT] == 0 and not lost
    timed_out = not won and not lost and step >= max_cycles
    scalars[OUTCOME] = WON if won else LOST if lost else TIMED_OUT if timed_out else RUNNING
    ended = won or lost
    for a in range(n):
        lives, dies = entities[a, PRESENT] == 1, entities[a, DIED] == 1
        acted = lives or dies
        reward = np.float32(0)
        if acted:
            if dies or entities[a, ENGAGED] or timed_out:
                reward = np.float32(-1)
            elif entities[a, KILLS]:
                reward = np.float32(entities[a, KILLS])
            else:
                reward = STEP_REWARD
        out.rewards[b, a] = reward
        out.returns[b, a] = reward + (out.returns[b, a] if step > 1 else np.float32(0))
        out.terminated[b, a] = acted and (ended or dies)
        out.truncated[b, a] = timed_out and lives
        out.alive[b, a] = lives
    out.done[b] = ended or timed_out
    out.won[b] = won
    out.length[b] = step
