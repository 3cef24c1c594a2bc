"""Kernels that start an episode: roles, movements, places, and the manual."""

import numpy as np
from numba import njit

from magrounding.envs.compiled import RUNNING, copy_row, document_key, shuffled_place
from magrounding.envs.messenger import arrays
from magrounding.envs.messenger.arrays import FIRST_SYMBOL
from magrounding.jit import inner_njit
from magrounding.seeding import LAYOUT, NUM_STREAMS, TASK, TEXT, below, hash64, stream_key

_OMISSION = 1 << 12
"""Counter from which the key of these draws is made; nothing else of an episode draws there."""
_PARTS = 1 << 20
"""Parts of a probability."""


@njit(inline="always")  # called in one place
def start_games(first, last, rules, tables, games, manual, out):
    """Generate, in each row that is done, the episode that its seed and episode number name, text and all."""
    for b in range(first, last):
        if not out.done[b]:
            continue
        keys, scalars, entities = games.keys[b], games.scalars[b], games.entities[b]
        for stream in range(NUM_STREAMS):
            keys[stream] = stream_key(scalars[arrays.SEED], scalars[arrays.EPISODE], stream)
        scalars[arrays.STEP] = 0
        scalars[arrays.DRAWS] = 0
        scalars[arrays.OUTCOME] = RUNNING
        unusual = _draw_task(keys[TASK], rules, tables, scalars, entities)
        if tables.starts.shape[0]:
            start = tables.starts[below(keys[LAYOUT], 0, tables.starts.shape[0])]
            for e in range(entities.shape[0]):
                entities[e, arrays.Y] = arrays.CELL * start[e, 0]
                entities[e, arrays.X] = arrays.CELL * start[e, 1]
        else:
            _place(keys[LAYOUT], rules.agents, tables.cells, entities)
        omitted = _abridge(keys[TEXT], rules, scalars)
        _write_manual(keys, rules, tables, entities, omitted, manual[b])
        out.document[b] = document_key(keys[TEXT], 0, rules.salt + (omitted << 8) + (unusual << 7))
        for a in range(rules.agents):
            out.alive[b, a] = True


@inner_njit
def _draw_task(key, rules, tables, scalars, entities):
    """Kinds, roles and movements; agents with or without messages.

    Returns whether the usual share of games with fixed roles would have made another game.
    """
    n, drawn = rules.agents, below(key, 0, _PARTS)
    fixed = rules.mixed and drawn < rules.fixed_roles * _PARTS
    triples = tables.other_triples if fixed else tables.triples
    triple = triples[below(key, 1, triples.shape[0])]
    movement = tables.movements[below(key, 2, tables.movements.shape[0])]
    scalars[arrays.WITH_MESSAGE] = below(key, 3, 10) < rules.begins_with_message
    for e in range(entities.shape[0]):
        entities[e, arrays.PRESENT] = 1
        entities[e, arrays.HOLDS] = e < n and scalars[arrays.WITH_MESSAGE]
        entities[e, arrays.DONE] = 0
        if e >= n:
            is_decoy = e > 3 * n
            part = e - 3 * n + 2 if is_decoy else (e - 1) // n  # slots: the enemy, n messages, n goals, decoys
            entities[e, arrays.KIND] = triple[part - 2 if is_decoy else part]
            entities[e, arrays.ROLE] = arrays.ENEMY if is_decoy else part
            entities[e, arrays.MOVEMENT] = movement[part]
    return rules.mixed and fixed != (drawn < arrays.FIXED_ROLES * _PARTS)


@inner_njit
def _place(key, n, cells, entities):
    """All agents in the middle, all others on distinct uniform cells."""
    counter = 0
    for e in range(entities.shape[0]):
        y, x, free = arrays.CELL * (arrays.SIZE // 2), arrays.CELL * (arrays.SIZE // 2), e < n
        while not free:
            cell = cells[below(key, counter, cells.shape[0])]
            counter += 1
            y, x, free = arrays.CELL * cell[0], arrays.CELL * cell[1], True
            for other in range(n, e):
                if entities[other, arrays.Y] == y and entities[other, arrays.X] == x:
                    free = False
        entities[e, arrays.Y] = y
        entities[e, arrays.X] = x


@inner_njit
def _abridge(text_key, rules, scalars):
    """Draw which statements are left out: bit k, statement k of `_write_manual`."""
    omitted = 0
    if rules.omission == 0.0:
        return omitted
    with_message = scalars[arrays.WITH_MESSAGE]
    key = hash64(text_key, _OMISSION)
    for k in range(rules.statements):
        needed = (k == arrays.MESSAGE and not with_message) or (k == arrays.GOAL and (with_message or rules.delivers))
        if not needed and below(key, k, _PARTS) < rules.omission * _PARTS:
            omitted |= 1 << k
    return omitted


@inner_njit
def _write_manual(keys, rules, tables, entities, omitted, manual):
    """A sentence for each kind and role, in random order; with decoys also one that is false.

    Statements 0, 1, 2 are about enemy, message and goal, 3 and 4 about the decoys. Number 5 states another role
    and another movement of the enemy's kind. A reassigned manual shifts all roles. With `game_id`, the one line of the
    manual is the symbols of enemy, message and goal. Bit k of `omitted` leaves statement k out, and its row empty.
    """
    n, key, statements = rules.agents, keys[TEXT], rules.statements
    shift = 1 + below(key, statements, 2) if rules.reassigned else 0
    if rules.game_id:
        for role in range(3):
            slot = n + (0 if role == arrays.ENEMY else 1 + (role - 1) * n)
            manual[0, (role + shift) % 3] = FIRST_SYMBOL + entities[slot, arrays.KIND]
        return
    chosen = np.empty(statements, np.int64)
    for k in range(statements):
        slot = n + (0 if k == 0 or k == 5 else 1 + (k - 1) * n if k <= 2 else 2 * n + k - 2)
        kind, role, movement = entities[slot, arrays.KIND], entities[slot, arrays.ROLE], entities[slot, arrays.MOVEMENT]
        if k == 5:
            role = arrays.MESSAGE + below(keys[TASK], 4, 2)
            movement = (movement + 1 + below(keys[TASK], 5, 2)) % 3
        role = (role + shift) % 3
        silent, of = rules.says_nothing, 100
        if rules.pools:  # one list after the other
            silent = tables.choices[kind, role, arrays.UNKNOWN]
            of = silent + tables.choices[kind, role, movement]
        if below(key, statements + 1 + 2 * k, of) < silent:
            movement = arrays.UNKNOWN
        which = below(key, statements + 2 + 2 * k, tables.choices[kind, role, movement])
        place = shuffled_place(key, k, statements)
        chosen[place] = -1 if omitted >> k & 1 else tables.first[kind, role, movement] + which
    _lay_out(chosen, tables.sentences, manual)


@inner_njit
def _lay_out(chosen, sentences, manual):
    """Write these sentences (−1: none) into a row each, or, where the manual has but one, one behind the other."""
    if manual.shape[0] > 1:
        for k in range(chosen.shape[0]):
            manual[k] = 0
            if chosen[k] >= 0:
                copy_row(sentences[chosen[k]], manual[k])
        return
    end = 0
    for k in range(chosen.shape[0]):
        for i in range(sentences.shape[1] if chosen[k] >= 0 else 0):
            word = sentences[chosen[k], i]
            if word == 0:
                break
            manual[0, end] = word
            end += 1
    manual[0, end:] = 0
