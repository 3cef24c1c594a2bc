"""Kernels that start games and that play a step of them, and show them, chunk by chunk."""

from __future__ import annotations

from numba import njit

from magrounding.envs.compiled import copy_document
from magrounding.envs.messenger.arrays import EPISODE
from magrounding.envs.messenger.dynamics import play_games
from magrounding.envs.messenger.generate import start_games
from magrounding.envs.messenger.observe import show_games


@njit(inline="always")  # the kernel is nothing else
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the episode that the seed and episode number of each row name that is done, and show it."""
    start_games(first, last, rules, tables, games, views.manual, out)
    for b in range(first, last):
        slots[b] = b
    show_games(first, last, False, out.done, slots, rules, games, views)


@njit(inline="always")  # the kernel is nothing else
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of games first … last-1 and show them.

    With `auto_reset`, a game that has ended shows its end in a row of `finals` (from row `first` on, in order), and is
    ready for `start_rows` to start its next episode.
    """
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
