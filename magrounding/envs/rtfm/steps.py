"""Kernels that start games and that play a step of them, and show them, chunk by chunk."""

from __future__ import annotations

from numba import njit

from magrounding.envs.compiled import copy_document, copy_row, document_key
from magrounding.envs.rtfm.arrays import EPISODE, STEP
from magrounding.envs.rtfm.dynamics import play_games
from magrounding.envs.rtfm.generate import salt_of, start_games, write_text
from magrounding.envs.rtfm.observe import show_games
from magrounding.seeding import TEXT


@njit(inline="always")  # the kernel is nothing else
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the episode that the seed and episode number of each row name that is done, and show it."""
    start_games(first, last, rules, tables, games, views.manual, views.goal, out)
    for b in range(first, last):
        slots[b] = b
    show_games(first, last, False, out.done, slots, rules, tables.background, games.entities, views)


@njit(inline="always")  # the kernel is nothing else
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of games first … last-1 and show them.

    With `auto_reset`, a game that has ended shows its end in a row of `finals` (from row `first` on, in order), and is
    ready for `start_rows` to start its next episode.
    """
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
