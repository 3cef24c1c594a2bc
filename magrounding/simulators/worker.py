"""A worker: some rows of an arena, played on command; here as a process that is sent bytes by a pipe."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import struct
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle

from magrounding.simulators.arena import Arena, arena_bytes
from magrounding.simulators.env_adapters import EnvAdapter, adapt
from magrounding.simulators.env_row import EnvRow
from magrounding.simulators.faults import pack_error
from magrounding.simulators.spaces import common_spec
from magrounding.spec import EnvSpec

STEP_GROUP = (b"0", b"1")
STEP_BOTH, RESET, LABEL, STATE = b"2", b"3", b"4", b"5"
"""Commands, a byte each; the end of the pipe is the command to end."""

DONE, REPORTED, FAILED = b".", b":", b"!"
"""Answers: done; done, and a message follows; failed, and an exception follows. A message begins with its length."""

LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Recipe:
    """Instructions by which a worker makes its envs, for an arena of so many rows; `spec` as of `vectorize`."""

    make_env: Callable[[], Any]
    num_envs: int
    spec: EnvSpec | None


class Simulators:
    """The envs of one worker, which play in their rows of an arena on command.

    Args:
        groups: its rows in the first and in the second half of the batch.
    """

    def __init__(self, groups: Sequence[range]) -> None:
        self._groups = groups
        self._adapters: list[EnvAdapter] = []
        self._envs: dict[int, EnvRow] = {}

    def make(self, packed: bytes) -> tuple[EnvSpec, int]:
        """Make the envs by a pickled Recipe, and return their spec and the number of envs of the whole batch."""
        recipe: Recipe = cloudpickle.loads(packed)
        for rows in self._groups:
            for _ in rows:
                self._adapters.append(adapt(recipe.make_env()))
        return common_spec(self._adapters, recipe.spec), recipe.num_envs

    def enter(self, arena: Arena) -> None:
        """Take the places of the envs in an arena of the whole batch."""
        self._arena = arena
        rows = [row for group in self._groups for row in group]
        pairs = zip(rows, self._adapters, strict=True)
        self._envs = {row: EnvRow(adapter, arena.spec, arena, row) for row, adapter in pairs}

    def obey(self, command: bytes) -> None:
        """Do what a command says, in the rows that it is for."""
        arena, envs, steps = self._arena, self._envs, command in (*STEP_GROUP, STEP_BOTH)
        for row in self._groups[STEP_GROUP.index(command)] if command in STEP_GROUP else envs:
            if steps:
                envs[row].step()
            elif command == STATE:
                envs[row].write_state()
            elif command == RESET and not arena.selected[row]:
                envs[row].rest()
            elif command == RESET:
                envs[row].reset()
            elif arena.selected[row]:
                envs[row].label()

    def close(self) -> None:
        """Close the envs; what one raises then is of no use, as the process ends."""
        for adapter in self._adapters:
            with contextlib.suppress(Exception):
                adapter.env.close()


def serve(packed: bytes, commands: int, answers: int, arena_file: int, groups: Sequence[range]) -> None:
    """Make envs for the rows of both groups, answer with their spec, then obey until the command pipe ends.

    Args:
        packed: a pickled Recipe.
        commands, answers, arena_file: descriptors; the arena's memory has its size from the first command on.
        groups: two ranges of rows.
    """
    simulators = Simulators(groups)
    try:
        spec, num_envs = simulators.make(packed)
        _answer(answers, REPORTED, pickle.dumps(spec))
        if command := os.read(commands, 1):
            simulators.enter(Arena(spec, num_envs, mmap.mmap(arena_file, arena_bytes(spec, num_envs))))
            while command:
                simulators.obey(command)
                os.write(answers, DONE)
                command = os.read(commands, 1)
    except BrokenPipeError:  # the parent has closed meanwhile
        pass
    except BaseException as error:  # whatever a simulator raises, SystemExit too
        with contextlib.suppress(BrokenPipeError):
            _answer(answers, FAILED, pack_error(error, traceback.format_exc()))
    simulators.close()


def _answer(answers: int, kind: bytes, message: bytes) -> None:
    rest = memoryview(kind + LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(answers, rest) :]
