"""Kernels that Python calls, compiled once a machine: see `CompiledWorld`."""

from magrounding.envs.compiled import copy_document, show_teammates
from magrounding.envs.messenger.arrays import (
    ALLY_ID,
    ALLY_WITH_MESSAGE_ID,
    CELL,
    EPISODE,
    FIRST_SYMBOL,
    HOLDS,
    KIND,
    ME_ID,
    ME_WITH_MESSAGE_ID,
    PRESENT,
    SIZE,
    STEP,
    X,
    Y,
)
from magrounding.envs.messenger.dynamics import can_move, play_games
from magrounding.envs.messenger.generate import start_games
from magrounding.jit import cached_njit, inner_njit
from magrounding.seeding import ORDER, below


@inner_njit
def show_games(first, last, every, done, slots, rules, games, views):
    """Write all observations but the text: of every game into its row of `views`, or of games done into slots[b]."""
    n = rules.agents
    for b in range(first, last):
        if not (every or done[b]):
            continue
        slot = b if every else slots[b]
        entities = games.entities[b]
        draw = below(games.keys[b, ORDER], games.scalars[b, STEP], 2 * entities.shape[0])
        for a in range(n):
            row, column, holds = entities[a, Y] // CELL, entities[a, X] // CELL, entities[a, HOLDS]
            cells = views.grid[slot, a]
            cells[:] = 0
            cells[(row * SIZE + column) * rules.occupants] = ME_WITH_MESSAGE_ID if holds else ME_ID
            _put_others(cells, a, draw, rules, entities)
            views.position[slot, a, 0] = row
            views.position[slot, a, 1] = column
            for move in range(views.action_mask.shape[2]):
                views.action_mask[slot, a, move] = can_move(entities, a, move)
            views.inventory[slot, a, 0] = ME_WITH_MESSAGE_ID if holds else 0
        show_teammates(slot, views)


@inner_njit
def _put_others(cells, viewer, draw, rules, entities):
    """Put all others on the map, as many as a cell shows; slots come from draw // 2 on, forwards or backwards."""
    n, count = rules.agents, entities.shape[0]
    e, stride = draw // 2, 1 if draw % 2 else count - 1
    for _ in range(count):
        e += stride
        e -= count if e >= count else 0
        if e == viewer or not entities[e, PRESENT]:
            continue
        symbol = FIRST_SYMBOL + entities[e, KIND]
        if e < n:
            symbol = ALLY_WITH_MESSAGE_ID if entities[e, HOLDS] else ALLY_ID
        at = ((entities[e, Y] // CELL) * SIZE + entities[e, X] // CELL) * rules.occupants
        for place in range(at, at + rules.occupants):
            if cells[place] == 0:
                cells[place] = symbol
                break


@cached_njit(nogil=True)
def write_states(rules, tables, games, states):
    """states [B, H * W * K + 4 n]: the board, all agents being allies; row, column, alive and inventory of each."""
    cells = SIZE * SIZE * rules.occupants
    for b in range(states.shape[0]):
        entities = games.entities[b]
        states[b, :cells] = 0
        _put_others(states[b], -1, 0, rules, entities)
        for a in range(rules.agents):
            at = cells + 4 * a
            states[b, at] = entities[a, Y] // CELL
            states[b, at + 1] = entities[a, X] // CELL
            states[b, at + 2] = 1
            states[b, at + 3] = ME_WITH_MESSAGE_ID if entities[a, HOLDS] else 0


@cached_njit(nogil=True)
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the games of rows that are done, see `CompiledWorld`."""
    start_games(first, last, rules, tables, games, views.manual, out)
    for b in range(first, last):
        slots[b] = b
    show_games(first, last, False, out.done, slots, rules, games, views)


@cached_njit(nogil=True)
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of rows, see `CompiledWorld`."""
    play_games(first, last, actions, rules, games, out)
    if auto_reset:
        slot = first
        for b in range(first, last):
            if out.done[b]:
                slots[b] = slot
                copy_document(views.manual, b, finals.manual, slot)
                slot += 1
        show_games(first, last, False, out.done, slots, rules, games, finals)
        for b in range(first, last):
            games.scalars[b, EPISODE] += out.done[b]
    show_games(first, last, True, out.done, slots, rules, games, views)
