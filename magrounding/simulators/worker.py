"""A worker process: some rows of an arena, played on command."""

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
from magrounding.simulators.env_adapters import adapt
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


def serve(packed: bytes, commands: int, answers: int, arena_file: int, groups: Sequence[range]) -> None:
    """Make envs for the rows of both groups, answer with their spec, then obey until the command pipe ends.

    Args:
        packed: a pickled Recipe.
        commands, answers, arena_file: descriptors; the arena's memory has its size from the first command on.
        groups: two ranges of rows.
    """
    adapters = []
    try:
        recipe: Recipe = cloudpickle.loads(packed)
        adapters = [adapt(recipe.make_env()) for rows in groups for _ in rows]
        spec = common_spec(adapters, recipe.spec)
        _answer(answers, REPORTED, pickle.dumps(spec))
        if command := os.read(commands, 1):
            arena = Arena(spec, recipe.num_envs, mmap.mmap(arena_file, arena_bytes(spec, recipe.num_envs)))
            rows = [row for group in groups for row in group]
            envs = {row: EnvRow(adapter, spec, arena, row) for row, adapter in zip(rows, adapters, strict=True)}
            while command:
                _run_command(command, arena, envs, groups)
                os.write(answers, DONE)
                command = os.read(commands, 1)
    except BrokenPipeError:  # the parent has closed meanwhile
        pass
    except BaseException as error:  # whatever a simulator raises, SystemExit too
        with contextlib.suppress(BrokenPipeError):
            _answer(answers, FAILED, pack_error(error, traceback.format_exc()))
    for adapter in adapters:
        with contextlib.suppress(Exception):  # the process ends anyway
            adapter.env.close()


def _run_command(command: bytes, arena: Arena, envs: dict[int, EnvRow], groups: Sequence[range]) -> None:
    steps = command in (*STEP_GROUP, STEP_BOTH)
    for row in groups[STEP_GROUP.index(command)] if command in STEP_GROUP else envs:
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


def _answer(answers: int, kind: bytes, message: bytes) -> None:
    rest = memoryview(kind + LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(answers, rest) :]
