"""Kernels that Python calls, compiled once a machine; why they close over a checksum: see `compiled.checksum`."""

from __future__ import annotations

from magrounding.envs.compiled import checksum, copy_document
from magrounding.envs.messenger import observe
from magrounding.envs.messenger.arrays import EPISODE
from magrounding.envs.messenger.dynamics import play_games
from magrounding.envs.messenger.generate import start_games
from magrounding.envs.messenger.observe import show_games
from magrounding.jit import cached_njit


def _entry_points(version: int):
    """Compile `start_rows`, `step_rows` and `write_states`, see `CompiledWorld`; the condition is always true."""

    @cached_njit(nogil=True)
    def start_rows(first, last, slots, rules, tables, games, views, out):
        if version:
            start_games(first, last, rules, tables, games, views.manual, out)
            for b in range(first, last):
                slots[b] = b
            show_games(first, last, False, out.done, slots, rules, games, views)

    @cached_njit(nogil=True)
    def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
        if version:
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
        if version:
            observe.write_states(rules, tables, games, states)

    return start_rows, step_rows, write_states


start_rows, step_rows, write_states = _entry_points(checksum("messenger"))
