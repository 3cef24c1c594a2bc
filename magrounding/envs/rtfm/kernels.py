"""Kernels that Python calls, compiled once per machine: `start_rows`, … of `CompiledWorld`, and `write_facts`."""

import numpy as np

from magrounding.envs.compiled import copy_document, copy_row, document_key, show_teammates
from magrounding.envs.rtfm.arrays import COLUMN, EPISODE, HELD, PRESENT, ROW, STEP, WORD_1, WORD_2
from magrounding.envs.rtfm.dynamics import play_games
from magrounding.envs.rtfm.generate import first_draw, salt_of, shifts_of, start_games, write_text
from magrounding.envs.rtfm.ontology import ALLY_ID, EMPTY_ID, FOG_ID, ME_ID
from magrounding.envs.rtfm.prose import write_prose
from magrounding.jit import cached_njit, inner_njit
from magrounding.seeding import TEXT


@inner_njit
def show_games(first, last, every, done, slots, rules, background, entities, views):
    """Write all observations but the text: of every game into its row of `views`, or of games done into slots[b]."""
    n, size, width, sight_squared = rules.agents, rules.size, 2 * rules.occupants, rules.sight_squared
    for b in range(first, last):
        if not (every or done[b]):
            continue
        slot = b if every else slots[b]
        actors = entities[b]
        for a in range(n):
            alive = actors[a, PRESENT] == 1
            row, column = actors[a, ROW], actors[a, COLUMN]
            cells = views.grid[slot, a]
            copy_row(background, cells)
            if alive:
                _put(cells, row, column, ME_ID, 0, size, width)
            put_others(cells, a, n, size, width, actors)
            if sight_squared >= 0:
                _cover(cells, alive, row, column, sight_squared, size, width)
            views.position[slot, a, 0] = row if alive else -1
            views.position[slot, a, 1] = column if alive else -1
            views.action_mask[slot, a, 0] = 1
            views.action_mask[slot, a, 1] = alive and row > 1
            views.action_mask[slot, a, 2] = alive and row < size - 2
            views.action_mask[slot, a, 3] = alive and column > 1
            views.action_mask[slot, a, 4] = alive and column < size - 2
            held = actors[a, HELD] if alive else -1
            views.inventory[slot, a, 0] = actors[held, WORD_1] if held >= 0 else 0
            views.inventory[slot, a, 1] = actors[held, WORD_2] if held >= 0 else 0
        show_teammates(slot, views)


@inner_njit
def put_others(cells, viewer, n, size, width, entities):
    """Teammates, monsters, items: in this order of importance, as many as a cell shows."""
    for e in range(entities.shape[0]):
        if entities[e, PRESENT] and e != viewer:
            row, column = entities[e, ROW], entities[e, COLUMN]
            if e < n:
                _put(cells, row, column, ALLY_ID, 0, size, width)
            else:
                _put(cells, row, column, entities[e, WORD_1], entities[e, WORD_2], size, width)


@inner_njit
def _put(cells, row, column, word_1, word_2, size, width):
    """Show an occupant in the first free place of its cell, if there is one."""
    at = (np.int64(row) * size + column) * width
    if cells[at] != EMPTY_ID:
        at += 2
        if width == 2 or cells[at] != 0:
            return
    cells[at] = word_1
    cells[at + 1] = word_2


@inner_njit
def _cover(cells, alive, row, column, sight_squared, size, width):
    """Fog over all cells beyond an agent's sight; a dead agent sees nothing."""
    for r in range(size):
        for c in range(size):
            rows, columns = r - row, c - column
            if not alive or rows * rows + columns * columns > sight_squared:
                at = (r * size + c) * width
                cells[at] = FOG_ID
                cells[at + 1 : at + width] = 0


@cached_njit(nogil=True)
def write_states(rules, tables, games, states):
    """states [B, H * W * K + 5 n]: the map, all agents being allies; row, column, alive and inventory of each agent."""
    cells = tables.background.shape[0]
    for b in range(states.shape[0]):
        entities = games.entities[b]
        copy_row(tables.background, states[b])
        put_others(states[b], -1, rules.agents, rules.size, 2 * rules.occupants, entities)
        for a in range(rules.agents):
            alive = entities[a, PRESENT] == 1
            held = entities[a, HELD] if alive else -1
            at = cells + 5 * a
            states[b, at] = entities[a, ROW] if alive else -1
            states[b, at + 1] = entities[a, COLUMN] if alive else -1
            states[b, at + 2] = alive
            states[b, at + 3] = entities[held, WORD_1] if held >= 0 else 0
            states[b, at + 4] = entities[held, WORD_2] if held >= 0 else 0


@cached_njit(nogil=True)
def write_facts(rules, tables, games, claims, manuals, facts):
    """facts [B, F, 9] of the manuals on show, and the manuals [B, R, L] once more."""
    for b in range(facts.shape[0]):
        key, scalars = games.keys[b, TEXT], games.scalars[b]
        shifts = shifts_of(key, rules, tables.elements.shape[1], tables.teams.shape[1])
        order, base = rules.shuffle_manual, first_draw(rules, scalars)
        write_prose(order, key, base, shifts, rules, tables, scalars, manuals[b], claims, facts[b])


@cached_njit(nogil=True)
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the games of rows that are done, see `CompiledWorld`."""
    start_games(first, last, rules, tables, games, views.manual, views.goal, out)
    for b in range(first, last):
        slots[b] = b
    show_games(first, last, False, out.done, slots, rules, tables.background, games.entities, views)


@cached_njit(nogil=True)
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of rows, see `CompiledWorld`."""
    play_games(first, last, actions, rules, games, out)
    show_step(first, last, auto_reset, slots, rules, tables, games, views, finals, out)


@inner_njit
def show_step(first, last, auto_reset, slots, rules, tables, games, views, finals, out):
    """Show rows that have played a step; with `auto_reset` the ends of games go to `finals`, see `CompiledWorld`."""
    if rules.resample_text:
        for b in range(first, last):
            write_text(b, rules, tables, games, views.manual, views.goal)
            out.document[b] = document_key(
                games.keys[b, TEXT], games.scalars[b, STEP], salt_of(rules, games.scalars[b])
            )
    if auto_reset:
        slot = first
        for b in range(first, last):
            if out.done[b]:
                slots[b] = slot
                copy_document(views.manual, b, finals.manual, slot)
                copy_row(views.goal[b], finals.goal[slot])
                slot += 1
        show_games(first, last, False, out.done, slots, rules, tables.background, games.entities, finals)
        for b in range(first, last):
            games.scalars[b, EPISODE] += out.done[b]
    show_games(first, last, True, out.done, slots, rules, tables.background, games.entities, views)
