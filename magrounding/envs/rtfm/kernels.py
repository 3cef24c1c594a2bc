"""Kernels that Python calls, compiled once per machine: `start_rows`, … of `CompiledWorld`, and `write_facts`."""

from __future__ import annotations

from magrounding.envs.compiled import copy_document, copy_row, document_key
from magrounding.envs.rtfm import observe
from magrounding.envs.rtfm.arrays import EPISODE, STEP
from magrounding.envs.rtfm.dynamics import play_games
from magrounding.envs.rtfm.generate import salt_of, start_games, write_text
from magrounding.envs.rtfm.observe import show_games
from magrounding.jit import cached_njit
from magrounding.seeding import TEXT


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


@cached_njit(nogil=True)
def write_states(rules, tables, games, states):
    """Write the states of all rows, see `CompiledWorld`."""
    observe.write_states(rules, tables, games, states)


@cached_njit(nogil=True)
def write_facts(*arguments):
    """Write what is known of all rows, see `observe.write_facts`."""
    observe.write_facts(*arguments)
