"""Arena: the arrays that envs write and a vector env shows, in memory that two processes may share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from magrounding.spec import EXPERT, EnvSpec
from magrounding.vector import PER_AGENT, PER_ENV, Info, Observation, StepResult

_CACHE_LINE = 64

Shape = tuple[int, ...]


class Arena:
    """All arrays of B envs, one after the other in one block of memory.

    Attributes:
        spec: of the envs.
        memory: the block, uint8.
        visible: its first bytes, everything that a step shows: `observation` to `episode`.
    """

    observation: Observation  # [B, n, …], or [B, …] where shared
    final_observation: Observation  # likewise; rows that are done hold their last
    rewards: np.ndarray  # [B, n], and so are the next five: as in a step and its `Info`
    terminated: np.ndarray
    truncated: np.ndarray
    alive: np.ndarray
    illegal: np.ndarray
    returns: np.ndarray
    done: np.ndarray  # [B], and so are the next four
    won: np.ndarray
    score: np.ndarray
    length: np.ndarray
    document: np.ndarray
    episode: np.ndarray  # [B] int64, number of the episode of its seed that a row plays
    actions: np.ndarray  # [B, n] int64
    seeds: np.ndarray  # [B] int64, of the rows
    selected: np.ndarray  # [B] bool, rows that a command is for
    held: np.ndarray  # [B] bool, rows that a step leaves as they are
    state: np.ndarray  # [B, S] int16
    labels: np.ndarray  # [B, n, A] bool, the best actions; no action without the capability

    def __init__(self, spec: EnvSpec, num_envs: int, memory: Any = None) -> None:
        spec.require_memory(num_envs)
        self.spec, self._num_envs = spec, num_envs
        size = arena_bytes(spec, num_envs)
        self.memory = np.zeros(size, np.uint8) if memory is None else np.frombuffer(memory, np.uint8, size)
        self.observation, self.final_observation = {}, {}
        end_of_visible = 0
        for name, start, stop, shape, dtype in _places(spec, num_envs):
            array = self.memory[start:stop].view(dtype).reshape(shape)
            kind, _, field = name.partition("/")
            if field:
                getattr(self, kind)[field] = array
            else:
                setattr(self, name, array)
            if name == "episode":
                end_of_visible = stop
        self.visible = self.memory[:end_of_visible]

    def __reduce__(self) -> tuple[type[Arena], tuple[EnvSpec, int, np.ndarray]]:
        """Return what a copy is made of: memory of its own, which all its arrays are views of once more."""
        return type(self), (self.spec, self._num_envs, self.memory.copy())

    def visible_arrays(self) -> list[np.ndarray]:
        """Return the arrays within `visible`."""
        return [*self.observation.values(), *(getattr(self, name) for name in (*PER_AGENT, *_PER_ROW))]


class View:
    """Some rows of an arena, side by side, as a caller sees them: the same array objects in every step, or copies."""

    def __init__(self, arena: Arena, rows: slice, origin: tuple[str, EnvSpec], copy: bool) -> None:
        self._arguments = arena, rows, origin, copy
        self._first, self._origin, self._copy = rows.start, origin, copy
        self._observation = {name: array[rows] for name, array in arena.observation.items()}
        self._flags = arena.rewards[rows], arena.terminated[rows], arena.truncated[rows]
        self._arrays = {
            name: getattr(arena, name)[rows]
            for name in ("done", "won", "score", "length", "returns", "alive", "illegal", "document")
        }

    def __reduce__(self) -> tuple[type[View], tuple[Arena, slice, tuple[str, EnvSpec], bool]]:
        """Return what a copy is made of: it shows the rows of the copied arena."""
        return type(self), self._arguments

    def start(self, final_observation: Observation, fault: np.ndarray | None) -> tuple[Observation, Info]:
        """Return what `VectorEnv.reset` does, for these rows, with faults [B] bool of theirs.

        Of an arena's `final_observation`, the rows that have ended are copied.
        """
        final = self._arrays["done"].nonzero()[0]
        last = {name: array[final + self._first] for name, array in final_observation.items()}
        observation, arrays = self._observation, {**self._arrays, "fault": fault}
        if self._copy:
            observation, arrays = _copies(observation), _copies(arrays)
        info = Info(**arrays, final_rows=final, final_observation=last, origin=self._origin)
        return dict(observation), info

    def after(self, final_observation: Observation, fault: np.ndarray | None) -> StepResult:
        """Return what `VectorEnv.step` does, for these rows; see `start`."""
        observation, info = self.start(final_observation, fault)
        rewards, terminated, truncated = (array.copy() for array in self._flags) if self._copy else self._flags
        return observation, rewards, terminated, truncated, info


def _copies(arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if array is None else array.copy() for name, array in arrays.items()}


def arena_bytes(spec: EnvSpec, num_envs: int) -> int:
    """Return the bytes of an arena."""
    return max(stop for _, _, stop, _, _ in _places(spec, num_envs))


def anonymous_file() -> int:
    """Return the descriptor of a file without a name, gone with the last process that holds it, however that ends."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("magrounding")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def write_file(file: int, content: bytes) -> None:
    """Put this into an anonymous file, in place of what it held."""
    with open(file, "wb", closefd=False) as whole:
        whole.truncate(0)
        whole.seek(0)
        whole.write(content)


def read_file(file: int) -> bytes:
    """Return what an anonymous file holds."""
    return os.pread(file, os.fstat(file).st_size, 0)


_PER_ROW = {**PER_ENV, "episode": np.int64}


def _places(spec: EnvSpec, num_envs: int) -> Iterator[tuple[str, int, int, Shape, np.dtype]]:
    """Yield (name, start, stop, shape, dtype) of each array, in bytes."""
    row, each = (num_envs,), (num_envs, spec.num_agents)
    fields = [(f.name, (*(row if f.shared else each), *f.shape), f.dtype) for f in spec.fields]
    arrays: list[tuple[str, Shape, Any]] = [
        *((f"observation/{name}", shape, dtype) for name, shape, dtype in fields),
        *((name, each, dtype) for name, dtype in PER_AGENT.items()),
        *((name, row, dtype) for name, dtype in _PER_ROW.items()),
        *((f"final_observation/{name}", shape, dtype) for name, shape, dtype in fields),
        ("actions", each, np.int64),
        ("seeds", row, np.int64),
        ("selected", row, np.bool_),
        ("held", row, np.bool_),
        ("state", (num_envs, spec.state_size), np.int16),
        ("labels", (*each, spec.num_actions if EXPERT in spec.capabilities else 0), np.bool_),
    ]
    start = 0
    for name, shape, kind in arrays:
        dtype = np.dtype(kind)
        stop = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        yield name, start, stop, shape, dtype
        start = -(-stop // _CACHE_LINE) * _CACHE_LINE
