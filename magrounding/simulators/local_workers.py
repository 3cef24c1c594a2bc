"""Workers as processes of this machine, whose arena is in memory that they share with this process."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import cloudpickle

from magrounding.simulators.arena import Arena, anonymous_file, arena_bytes, read_file, write_file
from magrounding.simulators.faults import Failure
from magrounding.simulators.handle import WorkerHandle
from magrounding.simulators.spawner import Scratch, spawn
from magrounding.simulators.worker import FAILED, Recipe
from magrounding.spec import EnvSpec

_LOOK_SECONDS = 0.5
"""Interval of looks at a silent worker: a process that it has started may hold its pipe open after its death."""


class LocalHandle(WorkerHandle):
    """Handle of a worker process, which has a pipe for commands and one for answers.

    Args:
        index, groups: as in the base.
        files: descriptors of the arena and of the recipe (see `bootstrap`).

    Attributes:
        answers: descriptor that answers come from.
    """

    def __init__(self, index: int, groups: tuple[slice, slice], files: tuple[int, int]) -> None:
        super().__init__(index, groups)
        self.answers = self._commands = self._message = -1
        self._files = files
        self._scratch: Scratch | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        self.sent, self.answered = 1, 0
        (their_commands, self._commands), (self.answers, their_answers) = os.pipe(), os.pipe()
        os.set_blocking(self.answers, False)
        self._message = anonymous_file()
        files = (their_commands, their_answers, *self._files, self._message)
        bounds = [bound for group in self.groups for bound in (group.start, group.stop)]
        arguments = [str(number) for number in (os.getpid(), *files, *bounds)]
        script = str(Path(__file__).with_name("bootstrap.py"))
        self._scratch = Scratch()  # what a killed simulator leaves goes with it
        try:
            self._process = spawn([sys.executable, "-P", script, *arguments], files, str(self._scratch.path))
        finally:
            os.close(their_commands)
            os.close(their_answers)
        return self.sent

    def send(self, command: bytes) -> int:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._commands, command)
        self.sent += 1
        return self.sent

    def read(self) -> Failure | None:
        """Read answers that have come; a Failure where the worker has raised or is gone."""
        try:
            got = os.read(self.answers, 65536)
        except BlockingIOError:  # it has ended, and a process that it has started holds the pipe open
            got = b""
        if got.endswith(FAILED):
            return Failure.unpacked(read_file(self._message))
        self.answered += len(got)
        return None if got else Failure(self.exit_reason())

    @property
    def spec(self) -> EnvSpec:
        return pickle.loads(read_file(self._message))

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def exit_reason(self) -> str:
        """Describe how the process has ended."""
        self._await_end(1.0)
        code = None if self._process is None else self._process.returncode
        if code is None:
            return "closed its pipe"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"

    def hang_up(self) -> None:
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1

    def end(self, seconds: float = 0.0) -> None:
        """Give the process some time to end, then kill it with what it has started; its temporary files go too."""
        self.hang_up()
        if self._process is not None:
            self._await_end(seconds)
            with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended
                os.killpg(self._process.pid, signal.SIGKILL)  # it may be gone, and what it has started still run
            self._process.wait()
            self._process = None
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None
        if self.answers >= 0:
            os.close(self.answers)
            os.close(self._message)
            self.answers = -1

    def _await_end(self, seconds: float) -> None:
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(seconds, 0))


class LocalWorkers:
    """Worker processes of this machine.

    Args:
        recipe: of their envs.
        shares: rows of each worker, as of a handle.
    """

    def __init__(self, recipe: Recipe, shares: Sequence[tuple[slice, slice]]) -> None:
        packed = pickle.dumps((sys.path, cloudpickle.dumps(recipe)))
        self._num_envs = recipe.num_envs
        self._files = self._arena_file, recipe_file = anonymous_file(), anonymous_file()
        write_file(recipe_file, packed)
        self.handles = [LocalHandle(w, groups, self._files) for w, groups in enumerate(shares)]

    def arena(self, spec: EnvSpec) -> Arena:
        """Return the arrays by which the pool and all workers know each other's rows, before the first command."""
        size = arena_bytes(spec, self._num_envs)
        os.ftruncate(self._arena_file, size)
        return Arena(spec, self._num_envs, mmap.mmap(self._arena_file, size))

    def ready(self, handles: Sequence[LocalHandle], seconds: float) -> list[LocalHandle]:
        """Wait for some workers, up to so many seconds; return those that have answered or ended."""
        poll = select.poll()
        of = {handle.answers: handle for handle in handles}
        for descriptor in of:
            poll.register(descriptor, select.POLLIN)
        found = poll.poll(max(0.0, min(seconds, _LOOK_SECONDS)) * 1000)
        return [of[descriptor] for descriptor, _ in found] or [handle for handle in handles if handle.has_ended()]

    def close(self) -> None:
        """Release what the workers share, once they have ended."""
        for file in self._files:
            os.close(file)
