"""Workers as actors of a Ray cluster, on any of its nodes: arrays of their rows go through Ray's object store.

Ray places them, carries the arrays, and says who died. The same envs play the same episodes as in workers of this
machine.
"""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import traceback
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import cloudpickle
import numpy as np

from magrounding.errors import ConfigurationError, MagroundingError, MissingExtra
from magrounding.extensions.cluster.ray_cluster import RAY, RayConnection, own_variables
from magrounding.simulators.arena import Arena
from magrounding.simulators.faults import Failure, pack_error
from magrounding.simulators.handle import WorkerHandle
from magrounding.simulators.spawner import ONE_THREAD, Scratch
from magrounding.simulators.worker import LABEL, RESET, STATE, STEP_GROUP, Recipe, Simulators
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
            recipe: Recipe = cloudpickle.loads(packed)
            spec = self._simulators.make(recipe)
            self._arena = Arena(spec, recipe.num_envs)
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
        with contextlib.suppress(Exception):  # what an env raises then is of no use, as the process ends
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


CORES = 0.5
"""Share of a core that Ray keeps free for an actor. A run has two batches at a time, one that it learns from and one
that it is evaluated on, which are never played at once: a worker of each has a core together."""

_ADDRESS = "RAY_ADDRESS"
"""Ray's own variable: the cluster to connect to."""
_MOST_SHOWN = 200
"""Characters of Ray's reason for an actor's death that the log has."""


class RayHandle(WorkerHandle):
    """Handle of an actor. Answers are copied into the pool's arena as they are read."""

    def __init__(self, index: int, groups: tuple[slice, slice], workers: RayWorkers) -> None:
        super().__init__(index, groups)
        self._workers, self._ray = workers, workers.ray
        self._ranges = [range(group.start, group.stop) for group in groups]
        self._actor: Any = None
        self._awaited: deque[tuple[bytes, Any]] = deque()  # (command, reference of its answer); b"" of the report
        self._spec: EnvSpec | None = None
        self._where: Any = None
        self._closing: Any = None

    @property
    def spec(self) -> EnvSpec:
        assert self._spec is not None  # it has reported
        return self._spec

    @property
    def pid(self) -> int:
        return 0 if self._actor is None else self._ray.get(self._where)[1]

    @property
    def awaited(self) -> Any:
        """Reference of the next answer."""
        return self._awaited[0][1]

    def start(self) -> int:
        self.sent, self.answered = 1, 0
        self._awaited.clear()
        self._actor = self._workers.actor.remote(self._ranges)
        self._where = self._actor.where.remote()
        self._awaited.append((b"", self._actor.begin.remote(self._workers.packed, own_variables())))
        return self.sent

    def send(self, command: bytes) -> int:
        groups = groups_of(command, self._ranges)
        read = pack(rows_of(read_by(command, self._workers.own_arena), groups))
        self._awaited.append((command, self._actor.obey.remote(command, read)))
        self.sent += 1
        return self.sent

    def read(self) -> Failure | None:
        """Read the next answer, which has come; a Failure where the worker has raised or is gone."""
        command, reference = self._awaited.popleft()
        try:
            answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            return Failure(_reason(error))
        if isinstance(answer, bytes):
            failure = Failure.unpacked(answer)
            if command or not isinstance(failure.error, MagroundingError | ImportError | OSError):
                return failure
            error = ConfigurationError(f"node {self._ray.get(self._where)[0]} cannot make the games: {failure.error}")
            error.__cause__ = failure.error  # its note says where it was raised
            return replace(failure, error=error)
        if not command:
            self._spec = answer
        else:
            groups = groups_of(command, self._ranges)
            shown, final = written_by(command, self._workers.own_arena)
            unpack(answer, rows_of(shown, groups) + rows_of(final, groups))  # no final ones where no game ended
        self.answered += 1
        return None

    def hang_up(self) -> None:
        if self._actor is not None and self._ray.is_initialized():
            self._closing = self._actor.close.remote()

    def end(self, seconds: float = 0.0) -> None:
        if self._actor is not None and self._ray.is_initialized():
            if self._closing is not None:
                self._ray.wait([self._closing], timeout=max(seconds, 0))
            self._ray.kill(self._actor)
        self._actor = self._closing = None
        self._awaited.clear()


class RayWorkers:
    """Actors of the cluster of `RAY_ADDRESS`, or of one of this machine that is started for them.

    Args:
        recipe: of their envs.
        shares: rows of each worker, as of a handle.

    Raises:
        ConfigurationError: no cluster there, or it is too small.
        MissingExtra: Ray is not installed.
    """

    own_arena: Arena

    @staticmethod
    def check(workers: str) -> None:
        """Raise MissingExtra where Ray is not installed."""
        if find_spec(RAY) is None:
            raise MissingExtra(f"workers {workers}", RAY)

    def __init__(self, recipe: Recipe, shares: Sequence[tuple[slice, slice]]) -> None:
        packed, self._num_envs, count = cloudpickle.dumps(recipe), recipe.num_envs, len(shares)
        self._connection = RayConnection(
            os.environ.get(_ADDRESS, "").removeprefix("ray://"),  # as --cluster has it
            count,
            feature=f"workers ray:{count}",
            instead=f"Workers of this machine need no Ray: {count} instead of ray:{count}",
        )
        self.ray = self._connection.ray
        try:
            cores = sum(node["Resources"].get("CPU", 0.0) for node in self._connection.nodes())
            if count * CORES > cores:
                raise ConfigurationError(
                    f"the Ray cluster has {cores:g} cores, too few for {count} workers: ray:{int(cores)} gives each one"
                )
            self.packed = self.ray.put(packed)
            self.actor = self.ray.remote(num_cpus=CORES, scheduling_strategy="SPREAD")(SimulatorActor)
        except BaseException:
            self.close()
            raise
        self.handles = [RayHandle(w, groups, self) for w, groups in enumerate(shares)]

    def arena(self, spec: EnvSpec) -> Arena:
        self.own_arena = Arena(spec, self._num_envs)
        return self.own_arena

    def ready(self, handles: Sequence[RayHandle], seconds: float) -> list[RayHandle]:
        """Wait for some workers, up to so many seconds; return those that have answered or ended."""
        of = {handle.awaited: handle for handle in handles}
        come, _ = self.ray.wait(list(of), timeout=max(0.0, seconds))
        return [of[reference] for reference in come]

    def close(self) -> None:
        self._connection.close()


def _reason(error: Exception) -> str:
    """Say in one line why Ray has no answer, without its guesses at the cause."""
    line = f"{error}".strip().splitlines()[-1].partition(" Some common causes")[0]
    return f"its actor gave no answer: {line.rpartition('exit detail: ')[2]}"[:_MOST_SHOWN]
