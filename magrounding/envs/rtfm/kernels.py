"""The four kernels that Python calls, compiled once a machine and again after any change of their sources.

Numba keeps compiled code on disk, and looks for changes in nothing but the file of the cached function itself: a
change of the rules in `dynamics` would go unnoticed. But what a function closes over is part of its key. So these
four, and no others, are cached, and close over a checksum of everything that is compiled into them.
"""

from __future__ import annotations

from magrounding import seeding
from magrounding.envs import compiled
from magrounding.envs.rtfm import (
    arrays,
    constructions,
    dynamics,
    generate,
    layouts,
    observe,
    ontology,
    prose,
    splits,
    steps,
    tasks,
    twins,
)
from magrounding.jit import cached_njit

_SOURCES = (
    arrays,
    compiled,
    constructions,
    dynamics,
    generate,
    layouts,
    observe,
    ontology,
    prose,
    seeding,
    splits,
    steps,
    tasks,
    twins,
)


def _entry_points(version: int):
    """`start_rows`, `step_rows`, `write_states`, `write_facts` of `steps` and `observe`. The condition is true."""

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

    @cached_njit(nogil=True)
    def write_facts(*arguments):
        if version:
            observe.write_facts(*arguments)

    return start_rows, step_rows, write_states, write_facts


start_rows, step_rows, write_states, write_facts = _entry_points(compiled.checksum(_SOURCES))
