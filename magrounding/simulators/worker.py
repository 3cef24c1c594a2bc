"""A worker: some rows of an arena, played on command; here as a process that is sent bytes by a pipe."""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from magrounding.simulators.arena import Arena, arena_bytes, write_file
from magrounding.simulators.env_adapters import EnvAdapter, adapt
from magrounding.simulators.env_row import EnvRow, players
from magrounding.simulators.faults import pack_error
from magrounding.simulators.spaces import common_spec
from magrounding.spec import EnvSpec

STEP_GROUP = (b"0", b"1")
STEP_BOTH, RESET, LABEL, STATE = b"2", b"3", b"4", b"5"
"""Commands, a byte each; the end of the pipe is the command to end."""

DONE, FAILED = b".", b"!"
"""Answers. What has failed, and before the first command the spec of the envs, is in the worker's message file."""


@dataclass(frozen=True)
class Recipe:
    """Instructions by which a worker makes its envs, for an arena of so many rows; `spec` as of `vectorize`."""

    make_env: Callable[[], Any]
    num_envs: int
    spec: EnvSpec | None


_METHODS = {RESET: EnvRow.reset, LABEL: EnvRow.label, STATE: EnvRow.write_state}
"""What each row does on command; steps may be played by several rows together."""


class Simulators:
    """The envs of one worker, or of this process, which play in their rows of an arena on command.

    Args:
        groups: its rows in the first and in the second half of the batch.
    """

    def __init__(self, groups: Sequence[range]) -> None:
        self._groups = groups
        self._adapters: list[EnvAdapter] = []

    def make(self, recipe: Recipe) -> EnvSpec:
        """Make the envs, and return their spec."""
        for _ in itertools.chain(*self._groups):
            self._adapters.append(adapt(recipe.make_env()))  # those made before an error are to be closed
        return common_spec(self._adapters, recipe.spec)

    def enter(self, arena: Arena) -> None:
        """Take the places of the envs in an arena of the whole batch."""
        adapters = iter(self._adapters)
        self._rows = [[EnvRow(next(adapters), arena, row) for row in rows] for rows in self._groups]
        self._players = [players(rows) for rows in self._rows]

    def obey(self, command: bytes) -> None:
        """Do what a command says, in the rows that it is for."""
        if command in _METHODS:
            for row in itertools.chain(*self._rows):
                _METHODS[command](row)
        else:
            for group in self._players if command == STEP_BOTH else [self._players[STEP_GROUP.index(command)]]:
                for player in group:
                    player.step()

    def close(self) -> None:
        """Close all envs, also where one raises."""
        with contextlib.ExitStack() as stack:
            for adapter in self._adapters:
                stack.callback(adapter.env.close)


def serve(packed: bytes, commands: int, answers: int, files: tuple[int, int], groups: Sequence[range]) -> None:
    """Make envs for the rows of both groups, answer with their spec, then obey until the command pipe ends.

    Args:
        packed: a pickled Recipe.
        commands, answers: descriptors of pipes.
        files: those of the arena, whose memory has its size from the first command on, and of the message file.
        groups: two ranges of rows.
    """
    simulators, (arena_file, message_file) = Simulators(groups), files
    try:
        recipe: Recipe = cloudpickle.loads(packed)
        spec, num_envs = simulators.make(recipe), recipe.num_envs
        write_file(message_file, pickle.dumps(spec))
        os.write(answers, DONE)
        if command := os.read(commands, 1):
            simulators.enter(Arena(spec, num_envs, mmap.mmap(arena_file, arena_bytes(spec, num_envs))))
            while command:
                simulators.obey(command)
                os.write(answers, DONE)
                command = os.read(commands, 1)
    except BrokenPipeError:  # the parent has closed meanwhile
        pass
    except BaseException as error:  # whatever a simulator raises, SystemExit too
        write_file(message_file, pack_error(error, traceback.format_exc()))
        with contextlib.suppress(BrokenPipeError):
            os.write(answers, FAILED)
    with contextlib.suppress(Exception):  # of no use, as the process ends
        simulators.close()
