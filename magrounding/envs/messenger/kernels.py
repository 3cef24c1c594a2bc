"""The three kernels that Python calls, compiled once a machine; why they close over a checksum: see `rtfm.kernels`."""

from __future__ import annotations

from magrounding import seeding
from magrounding.envs import compiled
from magrounding.envs.messenger import arrays, dynamics, entities, generate, observe
from magrounding.jit import cached_njit


def _entry_points(version: int):
    """`start_rows`, `step_rows` and `write_states`; arguments as in `observe`. The condition is always true."""

    @cached_njit(nogil=True)
    def start_rows(*arguments):
        if version:
            observe.start_rows(*arguments)

    @cached_njit(nogil=True)
    def step_rows(*arguments):
        if version:
            observe.step_rows(*arguments)

    @cached_njit(nogil=True)
    def write_states(*arguments):
        if version:
            observe.write_states(*arguments)

    return start_rows, step_rows, write_states


start_rows, step_rows, write_states = _entry_points(
    compiled.checksum((arrays, compiled, dynamics, entities, generate, observe, seeding))
)
