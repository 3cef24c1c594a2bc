"""The three kernels that Python calls, compiled once a machine; why they close over a checksum: see `rtfm.kernels`."""

from __future__ import annotations

from magrounding import seeding
from magrounding.envs import compiled
from magrounding.envs.messenger import arrays, dynamics, entities, generate, observe, steps
from magrounding.jit import cached_njit


def _entry_points(version: int):
    """`start_rows`, `step_rows` and `write_states`; arguments as in `steps` and `observe`. The condition is true."""

    @cached_njit(nogil=True)
    def start_rows(first, last, slots, rules, tables, games, views, out):
        if version:
            steps.start_rows(first, last, slots, rules, tables, games, views, out)

    @cached_njit(nogil=True)
    def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
        if version:
            steps.step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out)

    @cached_njit(nogil=True)
    def write_states(rules, tables, games, states):
        if version:
            observe.write_states(rules, tables, games, states)

    return start_rows, step_rows, write_states


start_rows, step_rows, write_states = _entry_points(
    compiled.checksum((arrays, compiled, dynamics, entities, generate, observe, seeding, steps))
)
