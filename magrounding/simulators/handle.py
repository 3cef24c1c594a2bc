"""WorkerHandle: the parent's end of one worker process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from magrounding.simulators.faults import unpack_error
from magrounding.simulators.scratch import Scratch
from magrounding.simulators.spawner import spawn
from magrounding.simulators.worker import DONE, FAILED, LENGTH

_LOOK_SECONDS = 0.5
"""Interval of looks at a silent worker: a process that it has started may hold its pipe open after its death."""


@dataclass(frozen=True)
class Failure:
    """Reason for which a worker gave no answer, in one line, and what its simulator raised and where, if it did."""

    reason: str
    error: BaseException | None = None
    trace: str = ""


class WorkerHandle:
    """Handle of a worker process: it starts it, sends commands of one byte, reads answers, and kills it.

    Commands are answered in their order: a ticket is the number of a command since the start. The report after the
    start is ticket 1.

    Args:
        index: which worker.
        groups: its rows in the first and in the second half of the batch.
        files: descriptors of the arena and of the recipe (see `bootstrap`).

    Attributes:
        has_rows: in each half, true where there are some.
        failures: how often it was replaced since it last finished a step.
        report: the message of the last answer that had one.
        answers: descriptor that answers come from.
    """

    def __init__(self, index: int, groups: tuple[slice, slice], files: tuple[int, int]) -> None:
        self.index, self.groups = index, groups
        self.rows = [row for group in groups for row in range(group.start, group.stop)]
        self.has_rows = [group.start < group.stop for group in groups]
        self.failures = 0
        self.report = b""
        self.sent = self.answered = 0
        self.answers = self._commands = -1
        self._files = files
        self._unread = b""
        self._scratch: Scratch | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> int:
        """Start a fresh process and return the ticket of its report."""
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
        """Send a command and return its ticket. A worker that is gone is noticed when its answer is awaited."""
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
            self.report = message or self.report
            self._unread = self._unread[end:]
            self.answered += 1
        return None

    @property
    def pid(self) -> int:
        """Process id; 0 without a process."""
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
        """Close the command pipe, which asks the worker to end."""
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


def wait(tickets: Mapping[WorkerHandle, int], seconds: float) -> dict[WorkerHandle, Failure]:
    """Wait until every worker has answered its ticket; return those that failed to within `seconds`, and why."""
    pending = {handle.answers: handle for handle, ticket in tickets.items() if handle.answered < ticket}
    failures: dict[WorkerHandle, Failure] = {}
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
