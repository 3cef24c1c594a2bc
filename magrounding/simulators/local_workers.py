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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import cloudpickle

from magrounding.simulators.arena import Arena, anonymous_file, arena_bytes
from magrounding.simulators.faults import unpack_error
from magrounding.simulators.handle import Failure, WorkerHandle
from magrounding.simulators.scratch import Scratch
from magrounding.simulators.spawner import spawn
from magrounding.simulators.worker import DONE, FAILED, LENGTH, Recipe
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
        self.answers = self._commands = -1
        self._files = files
        self._unread = self._report = b""
        self._scratch: Scratch | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        self.sent, self.answered, self._unread = 1, 0, b""
        (their_commands, self._commands), (self.answers, their_answers) = os.pipe(), os.pipe()
        files = (their_commands, their_answers, *self._files)
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
        got = os.read(self.answers, 65536)
        if got == DONE and not self._unread:
            self.answered += 1
            return None
        if not got:
            return Failure(self.exit_reason())
        self._unread += got
        while self._unread:
            kind, end, message = self._unread[:1], 1, b""
            if kind != DONE:
                start = 1 + LENGTH.size
                end = start + LENGTH.unpack(self._unread[1:start])[0] if len(self._unread) >= start else start
                if len(self._unread) < end:
                    break
                message = self._unread[start:end]
            if kind == FAILED:
                error, trace = unpack_error(message)
                return Failure(f"{type(error).__name__}: {error}", error, trace.strip())
            self._report = message or self._report
            self._unread = self._unread[end:]
            self.answered += 1
        return None

    @property
    def spec(self) -> EnvSpec:
        return pickle.loads(self._report)

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
        with os.fdopen(os.dup(recipe_file), "wb") as file:
            file.write(packed)
        self.handles = [LocalHandle(w, groups, self._files) for w, groups in enumerate(shares)]

    def arena(self, spec: EnvSpec) -> Arena:
        """Return the arrays by which the pool and all workers know each other's rows, before the first command."""
        size = arena_bytes(spec, self._num_envs)
        os.ftruncate(self._arena_file, size)
        return Arena(spec, self._num_envs, mmap.mmap(self._arena_file, size))

    def wait(self, tickets: Mapping[LocalHandle, int], seconds: float) -> dict[LocalHandle, Failure]:
        """Wait until every worker has answered its ticket; return those that failed to within `seconds`, and why."""
        pending = {handle.answers: handle for handle, ticket in tickets.items() if handle.answered < ticket}
        failures: dict[LocalHandle, Failure] = {}
        poll = select.poll()
        for descriptor in pending:
            poll.register(descriptor, select.POLLIN)
        deadline = time.monotonic() + seconds
        while pending:
            left = deadline - time.monotonic()
            ready = poll.poll(max(0.0, min(left, _LOOK_SECONDS)) * 1000)
            for descriptor, _ in ready:
                handle = pending[descriptor]
                failure = handle.read()
                if failure is not None:
                    failures[handle] = failure
                if failure is not None or handle.answered >= tickets[handle]:
                    poll.unregister(descriptor)
                    del pending[descriptor]
            if ready:
                continue
            for descriptor, handle in list(pending.items()):
                ended = handle.has_ended()
                if ended or left <= 0:
                    failures[handle] = Failure(handle.exit_reason() if ended else f"no answer for {seconds:g} s")
                    poll.unregister(descriptor)
                    del pending[descriptor]
        return failures

    def close(self) -> None:
        """Release what the workers share, once they have ended."""
        for file in self._files:
            os.close(file)
