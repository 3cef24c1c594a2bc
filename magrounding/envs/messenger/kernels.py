"""Kernels that Python calls, compiled once a machine: see `CompiledWorld`."""

from __future__ import annotations

from magrounding.envs.compiled import copy_document
from magrounding.envs.messenger import observe
from magrounding.envs.messenger.arrays import EPISODE
from magrounding.envs.messenger.dynamics import play_games
from magrounding.envs.messenger.generate import start_games
from magrounding.envs.messenger.observe import show_games
from magrounding.jit import cached_njit


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


@cached_njit(nogil=True)
def write_states(rules, tables, games, states):
    """Write the states of all rows, see `CompiledWorld`."""
    observe.write_states(rules, tables, games, states)
