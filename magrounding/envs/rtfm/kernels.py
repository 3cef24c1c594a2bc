"""Kernels that Python calls, compiled once per machine: `start_rows`, … of `CompiledWorld`, and `write_facts`."""

import numpy as np

from magrounding.envs.compiled import copy_document, copy_row, document_key
from magrounding.envs.rtfm.arrays import (
    ALL,
    COLUMN,
    ELEMENT_DIVISION,
    EPISODE,
    FIRST_TELL,
    HELD,
    OTHER_LINES,
    PRESENT,
    ROW,
    STEP,
    TALK,
    TEAM_DIVISION,
    WORD_1,
    WORD_2,
)
from magrounding.envs.rtfm.dynamics import play_games
from magrounding.envs.rtfm.generate import first_draw, salt_of, shifts_of, start_games, write_text
from magrounding.envs.rtfm.ontology import ALLY_ID, EMPTY_ID, FOG_ID, ME_ID
from magrounding.envs.rtfm.prose import write_prose
from magrounding.envs.rtfm.splits import draw_assignment
from magrounding.envs.rtfm.telling import deal_rows, draw_owners, may_tell
from magrounding.jit import cached_njit, inner_njit
from magrounding.seeding import TASK, TEXT, hash64

_OF_ANOTHER = 1 << 16
"""Counter from which the key of the assignment of another game is made; nothing else of an episode draws there."""


@inner_njit
def show_games(first, last, every, done, slots, rules, background, scalars, entities, views):
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
            _put_others(cells, a, n, size, width, actors)
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
        if rules.reading != ALL:
            _show_tells(slot, rules, background, scalars[b], actors, views)
        for a in range(rules.players):
            for k in range(rules.players - 1):
                other = k if k < a else k + 1
                views.teammates[slot, a, k, 0] = views.position[slot, other, 0]
                views.teammates[slot, a, k, 1] = views.position[slot, other, 1]
                views.teammates[slot, a, k, 2] = views.inventory[slot, other, 0]
                views.teammates[slot, a, k, 3] = views.inventory[slot, other, 1]


@inner_njit
def _put_others(cells, viewer, n, size, width, entities):
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
        for cell in range(cells):  # the error message of an assignment of slices takes seconds to compile
            states[b, cell] = tables.background[cell]
        _put_others(states[b], -1, rules.agents, rules.size, 2 * rules.occupants, entities)
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
def write_facts(rules, tables, games, claims, manuals, facts, counts):
    """facts [B, F, 9] of the manuals on show, counts [B] of them, and the manuals [B, R, L] once more."""
    for b in range(facts.shape[0]):
        key, scalars = games.keys[b, TEXT], games.scalars[b]
        shifts = shifts_of(key, rules, tables.elements.shape[1], tables.teams.shape[1])
        order, base = rules.shuffle_manual, first_draw(rules, scalars)
        counts[b] = write_prose(order, key, base, shifts, rules, tables, scalars, manuals[b], claims, facts[b])


@cached_njit(nogil=True)
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the games of rows that are done, see `CompiledWorld`."""
    start_games(first, last, rules, tables, games, views.manual, views.goal, out)
    for b in range(first, last):
        slots[b] = b
    show_games(first, last, False, out.done, slots, rules, tables.background, games.scalars, games.entities, views)


@cached_njit(nogil=True)
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of rows, see `CompiledWorld`."""
    play_games(first, last, actions, rules, games, out)
    if rules.resample_text:
        for b in range(first, last):
            write_text(b, rules, tables, games, views.manual, views.goal)
            out.document[b] = document_key(
                games.keys[b, TEXT], games.scalars[b, STEP], salt_of(rules, games.scalars[b])
            )
    if rules.reading != ALL:
        for b in range(first, last):
            deal_rows(b, rules, games.scalars[b], views)
    if auto_reset:
        slot = first
        for b in range(first, last):
            if out.done[b]:
                slots[b] = slot
                if rules.reading == ALL:
                    copy_document(views.manual, b, finals.manual, slot)
                else:
                    copy_document(views.lines, b, finals.lines, slot)
                    copy_document(views.told_by, b, finals.told_by, slot)
                copy_row(views.goal[b], finals.goal[slot])
                slot += 1
        show_games(first, last, False, out.done, slots, rules, tables.background, games.scalars, games.entities, finals)
        for b in range(first, last):
            games.scalars[b, EPISODE] += out.done[b]
    show_games(first, last, True, out.done, slots, rules, tables.background, games.scalars, games.entities, views)


@cached_njit(nogil=True)
def split_rows(first, last, rules, tables, games, views, out):
    """Split the manuals of games that `start_rows` has started, and show whose rows are whose."""
    ways = tables.elements.shape[0]
    for b in range(first, last):
        if not out.done[b]:
            continue
        keys, scalars = games.keys[b], games.scalars[b]
        draw_owners(keys, rules, scalars)
        if rules.heard == OTHER_LINES:
            teams, elements = scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION]
            other = draw_assignment(hash64(keys[TASK], _OF_ANOTHER), 0, rules.side, tables.teams.shape[0] * ways)
            scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION] = other // ways, other % ways
            write_text(b, rules, tables, games, views.heard, views.goal)
            scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION] = teams, elements
        deal_rows(b, rules, scalars, views)
        _show_tells(b, rules, tables.background, scalars, games.entities[b], views)
        out.alive[b] = True


@inner_njit
def _show_tells(slot, rules, background, scalars, entities, views):
    """Show which rows each agent may tell, that nobody moves while all talk, and the map to a librarian."""
    for a in range(rules.players):
        mask = views.action_mask[slot, a]
        if a == rules.agents:
            copy_row(background, views.grid[slot, a])
            _put_others(views.grid[slot, a], -1, a, rules.size, 2 * rules.occupants, entities)
            views.position[slot, a] = -1
            mask[0] = 1
        elif scalars[STEP] < scalars[TALK]:
            mask[1:FIRST_TELL] = 0
        for row in range(mask.shape[0] - FIRST_TELL):
            mask[FIRST_TELL + row] = may_tell(a, row, rules, scalars, entities)
