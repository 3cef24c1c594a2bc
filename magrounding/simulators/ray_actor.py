"""SimulatorActor: a worker as an actor of a Ray cluster, which is sent its rows of arrays and answers with them.

All that a command reads, or writes, is one block of bytes: Ray needs a quarter of a millisecond for twenty arrays.
"""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from magrounding.simulators.arena import Arena
from magrounding.simulators.faults import pack_error
from magrounding.simulators.scratch import Scratch
from magrounding.simulators.spawner import ONE_THREAD
from magrounding.simulators.worker import LABEL, RESET, STATE, STEP_GROUP, Simulators
from magrounding.spec import EnvSpec


class SimulatorActor:
    """The envs of one worker, whose rows are of an arena of its own: what a command reads and writes is sent.

    Every method but `close` returns what `faults.pack_error` has packed where anything is raised.
    """

    def __init__(self, groups: Sequence[range]) -> None:
        self._groups, self._simulators = groups, Simulators(groups)
        self._scratch: Scratch | None = None

    def where(self) -> tuple[str, int]:
        """Return the name of the node and the process id."""
        return platform.node(), os.getpid()

    def begin(self, packed: bytes, variables: Mapping[str, str]) -> EnvSpec | bytes:
        """Make the envs by a pickled Recipe, with the caller's variables, and return their spec."""
        try:
            os.environ.update(variables)
            self._scratch = Scratch()  # what a killed simulator leaves goes with the next worker of this node
            os.environ["TMPDIR"] = tempfile.tempdir = str(self._scratch.path)
            for name in ONE_THREAD:
                os.environ.setdefault(name, "1")
            spec, num_envs = self._simulators.make(packed)
            self._arena = Arena(spec, num_envs)
            self._simulators.enter(self._arena)
        except BaseException as error:  # whatever a simulator raises, SystemExit too
            return pack_error(error, traceback.format_exc())
        return spec

    def obey(self, command: bytes, read: np.ndarray) -> np.ndarray | bytes:
        """Take what a command reads, do what it says, and return what it has written (`read_by`, `written_by`)."""
        try:
            arena, groups = self._arena, groups_of(command, self._groups)
            unpack(read, rows_of(read_by(command, arena), groups))
            self._simulators.obey(command)
            shown, final = written_by(command, arena)
            ended = final and any(done.any() for done in rows_of([arena.done], groups))
            return pack(rows_of(shown, groups) + (rows_of(final, groups) if ended else []))
        except BaseException as error:
            return pack_error(error, traceback.format_exc())

    def close(self) -> None:
        """Close the envs and remove their temporary files."""
        self._simulators.close()
        if self._scratch is not None:
            self._scratch.remove()


def groups_of(command: bytes, groups: Sequence[range]) -> Sequence[range]:
    """Return the groups of rows that a command is for."""
    return [groups[STEP_GROUP.index(command)]] if command in STEP_GROUP else groups


def read_by(command: bytes, arena: Arena) -> list[np.ndarray]:
    """Return the arrays that a command reads in its rows."""
    if command == RESET:
        return [arena.seeds, arena.episode, arena.selected]
    if command == LABEL:
        return [arena.selected, arena.labels]  # rows that are not selected keep their labels
    return [] if command == STATE else [arena.actions, arena.held]


def written_by(command: bytes, arena: Arena) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the arrays that a command writes in its rows, and those that it writes where a game has ended."""
    if command == LABEL:
        return [arena.labels], []
    if command == STATE:
        return [arena.state], []
    return arena.visible_arrays(), list(arena.final_observation.values())


def rows_of(arrays: Sequence[np.ndarray], groups: Sequence[range]) -> list[np.ndarray]:
    """Return the rows of each group in all of the arrays of an arena."""
    return [array[rows.start : rows.stop] for rows in groups for array in arrays]


def pack(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Return the bytes of arrays, one after the other, uint8."""
    return np.concatenate([_bytes(array) for array in arrays] or [np.zeros(0, np.uint8)])


def unpack(block: np.ndarray, arrays: Iterable[np.ndarray]) -> None:
    """Write what `pack` returned to arrays of the same shapes; the last ones stay as they are where it ends before."""
    start = 0
    for array in map(_bytes, arrays):
        if start == len(block):
            break
        array[:] = block[start : start + len(array)]
        start += len(array)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
