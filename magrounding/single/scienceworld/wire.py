"""Wire: questions to a Java process in py4j's protocol, many of them at once, and no question without an end.

py4j's own client has no limit of time for a process that is frozen, one question a round trip, and writes to the root
logger; its server, in Java, is what answers here. A question is a line for each of: the kind of command, the object,
the method, the arguments, and an end; an answer is one line, "!y" and a value or "!x" and an error. Objects are
numbered as they are answered, so that a question can name the object that the one before it will get.
"""

from __future__ import annotations

import socket
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any, NamedTuple

from magrounding.simulators.faults import SimulatorError

FROZEN_SECONDS = 5.0
"""Seconds without an answer, and without any processor time, after which the process counts as frozen."""

LIMIT_SECONDS = 300.0
"""Seconds without an answer after which it counts as lost in a loop. Gold paths, the longest answers, take ten."""

_LOOK_SECONDS = 0.5

_QUICK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""Socket option of Linux that acknowledges at once, and not after 40 ms."""


class Reference(NamedTuple):
    """An object in Java, which lives until it is forgotten."""

    id: str


class CallBatch:
    """Calls that are sent together; each may use the objects that those before it return, numbered from `first`.

    Attributes:
        questions: so far.
        objects: number of the objects that they return.
        kept: objects that stay until they are forgotten.
        values: places of the questions whose values are returned.
    """

    def __init__(self, first: int) -> None:
        self.questions: list[str] = []
        self.objects = 0
        self.kept: list[Reference] = []
        self.values: list[int] = []
        self._first = first
        self._passing: list[Reference] = []

    def keep(self, question: str) -> Reference:
        """Add a question and return its object, which stays until it is forgotten."""
        self.kept.append(self._object(question))
        return self.kept[-1]

    def passing(self, question: str) -> Reference:
        """Add a question and return its object, which is forgotten at the end of the batch."""
        self._passing.append(self._object(question))
        return self._passing[-1]

    def run(self, question: str) -> None:
        """Add a question whose answer is ignored."""
        self.questions.append(question)

    def value(self, question: str) -> None:
        """Add a question whose value is returned."""
        self.values.append(len(self.questions))
        self.questions.append(question)

    def end(self) -> None:
        """Forget the passing objects."""
        self.questions += map(forget, self._passing)
        self._passing.clear()

    def _object(self, question: str) -> Reference:
        self.questions.append(question)
        self.objects += 1
        return Reference(f"o{self._first + self.objects - 1}")


Value = str | int | float | bool | Reference | None
_KINDS = {bool: "b", int: "i", float: "d"}


def call(target: Reference | str, method: str, *arguments: Value) -> str:
    """Return the question that calls a method of an object, or of a class by its name."""
    name = target.id if isinstance(target, Reference) else f"z:{target}"
    return f"c\n{name}\n{method}\n{_written(arguments)}"


def create(name: str, *arguments: Value) -> str:
    """Return the question that makes an object of a class."""
    return f"i\n{name}\n{_written(arguments)}"


def member(name: str, field: str) -> str:
    """Return the question for a static field of a class."""
    return f"r\nm\n{name}\n{field}\ne\n"


def forget(reference: Reference) -> str:
    """Return the question that forgets an object."""
    return f"m\nd\n{reference.id}\ne\n"


class Wire:
    """A connection to a Java process at a port, which wants to hear a password first and is looked at while silent.

    `close()` hangs up; so does garbage collection. A SimulatorError where the process does not answer.
    """

    def __init__(self, process: Popen[bytes], port: int, password: str) -> None:
        self._process = process
        try:
            self._socket = socket.create_connection(("127.0.0.1", port), timeout=_LOOK_SECONDS)
        except OSError as error:
            raise SimulatorError(f"it does not listen: {error}") from error
        self.close = weakref.finalize(self, self._socket.close)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = b""
        self._next = 0
        self._send([f"A\n{password}\n"])

    def batch(self) -> CallBatch:
        return CallBatch(self._next)

    def ask(self, batch: CallBatch) -> list[Any]:
        """Send a batch and return its values, in their order.

        A SimulatorError where the process has ended, is frozen or lost in a loop, or a question has failed: what is
        asked after that gets no sensible answer.
        """
        batch.end()
        answers = self._send(batch.questions)
        self._next += batch.objects
        return [answers[place] for place in batch.values]

    def _send(self, questions: Sequence[str]) -> list[Value]:
        try:
            self._socket.settimeout(LIMIT_SECONDS)
            self._socket.sendall("".join(questions).encode())
            self._socket.settimeout(_LOOK_SECONDS)
            lines = self._lines(len(questions))
        except OSError as error:
            raise SimulatorError(f"it does not answer: {error}") from error
        return [_read(line) for line in lines]

    def _lines(self, count: int) -> list[str]:
        asked = moved = time.monotonic()
        used = _processor_time(self._process.pid)
        while self._unread.count(b"\n") < count:
            if _QUICK is not None:  # Java sends each answer when the one before is acknowledged; it lasts for one
                self._socket.setsockopt(socket.IPPROTO_TCP, _QUICK, 1)
            try:
                came = self._socket.recv(1 << 18)
            except TimeoutError:
                now, using = time.monotonic(), _processor_time(self._process.pid)
                if using is None or using != used:
                    moved, used = now, using
                if now - moved > FROZEN_SECONDS or now - asked > LIMIT_SECONDS:
                    raise SimulatorError(
                        f"it is frozen, or lost in a loop: no answer for {now - asked:.0f} s"
                    ) from None
                continue
            if not came:
                raise SimulatorError("it has hung up")
            self._unread += came
        *lines, self._unread = self._unread.split(b"\n", count)
        return [line.decode() for line in lines]


def _written(arguments: tuple[Value, ...]) -> str:
    return "".join(f"{_value(argument)}\n" for argument in arguments) + "e\n"


def _value(value: Value) -> str:
    if isinstance(value, Reference):
        return "r" + value.id
    if isinstance(value, str):
        return "s" + value.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")
    return "n" if value is None else f"{_KINDS[type(value)]}{value}"


def _read(line: str) -> Value:
    if not line.startswith("!y"):
        raise SimulatorError(f"it has failed: {_plain(line[3:]).splitlines()[0] if line[3:] else line}")
    kind, rest = line[2:3], line[3:]
    return _READERS[kind](rest) if kind in _READERS else None


def _plain(text: str) -> str:
    if "\\" not in text:
        return text
    parts = (part.replace("\\r", "\r").replace("\\n", "\n") for part in text.split("\\\\"))
    return "\\".join(parts)


_READERS: dict[str, Callable[[str], Value]] = {
    **dict.fromkeys("rltha", Reference),
    **dict.fromkeys("iL", int),
    "d": float,
    "b": lambda text: text.lower() == "true",
    "s": _plain,
}
"""Kind of an answer → how it is read; any other is no value."""


def _processor_time(pid: int) -> int | None:
    """Ticks of the processor that a process has had; None where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])
