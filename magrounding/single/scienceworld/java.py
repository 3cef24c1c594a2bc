"""Java: one supervised process of ScienceWorld's program, for all games of this process."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

from magrounding.errors import ConfigurationError
from magrounding.simulators import bootstrap
from magrounding.simulators.faults import SimulatorError
from magrounding.simulators.spawner import spawn
from magrounding.single.scienceworld.wire import CallBatch, Reference, Wire, call, forget, member

START_SECONDS = 60.0
"""Seconds granted to Java until it listens."""

_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    "-Djava.awt.headless=true",
)
"""Options of Java. `hashCode=2`: the program walks through sets of objects in the order of their identity hashes, which
are random, and with them the order of a room's doors and of what happens in a step. Equal hashes leave the order of
insertion."""


class Java:
    """A Java process that plays games, with so many megabytes for objects.

    One that freezes or fails is killed, so that every question comes to an end. It ends with the last game that holds
    it, and with this process, however that one ends.

    Raises:
        ConfigurationError: there is no Java.
        SimulatorError: it does not start.
    """

    def __init__(self, heap: int) -> None:
        options = (f"-Xmx{heap}m", *_OPTIONS)
        server = ("py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")
        command = [find_java(), "-cp", _classes(), *options, *server]
        (source, keep_alive), (output, sink) = os.pipe(), os.pipe()
        launcher = [sys.executable, "-I", "-S", bootstrap.__file__, "exec"]
        try:
            self._process = spawn([*launcher, *map(str, (os.getpid(), source, sink)), *command], (source, sink))
        except BaseException:
            os.close(keep_alive)
            os.close(output)
            raise
        finally:
            os.close(source)
            os.close(sink)
        self.pid = self._process.pid
        self._left: list[Reference] = []
        self._finalizer = weakref.finalize(self, _end, self._process, keep_alive, os.getpid())
        try:
            self._wire = Wire(self._process, *_greeting(output))
            self._keep_to_itself()
        except BaseException:
            self._finalizer()
            raise

    @property
    def has_ended(self) -> bool:
        """True once the process has ended."""
        return not self._finalizer.alive or self._process.poll() is not None

    def batch(self) -> CallBatch:
        """Begin a batch; SimulatorError where the process has ended."""
        if not self._finalizer.alive:
            raise SimulatorError(f"ScienceWorld's Java process {self.pid} has ended: call reset()")
        batch = self._wire.batch()
        while self._left:
            batch.run(forget(self._left.pop()))
        return batch

    def release(self, references: list[Reference]) -> None:
        """Forget some objects, with the next batch."""
        self._left += references

    def ask(self, batch: CallBatch) -> list[Any]:
        """Return the answers to a batch; SimulatorError where the process is lost, or has failed and is ended."""
        try:
            return self._wire.ask(batch)
        except SimulatorError as error:
            reason = f"{error}{self._exit_reason()}"
            self.end()
            raise SimulatorError(f"ScienceWorld's Java process {self.pid} was lost: {reason}") from error
        except BaseException:  # Ctrl-C: an answer may be on its way that belongs to no question any more
            self.end()
            raise

    def end(self) -> None:
        """Kill the process; twice is fine."""
        self._wire.close()
        self._finalizer()

    def _keep_to_itself(self) -> None:
        """Have the program write its table of types, which nothing here needs, nowhere, and not where one works."""
        batch = self.batch()
        table = batch.passing(member("util.UniqueTypeID$", "MODULE$"))
        kind = batch.passing(call("java.lang.Class", "forName", "util.UniqueTypeID$"))
        field = batch.passing(call(kind, "getDeclaredField", "FILENAME_IDS"))
        batch.run(call(field, "setAccessible", True))
        batch.run(call(field, "set", table, os.devnull))
        self.ask(batch)

    def _exit_reason(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(0.2)
            return f" (killed by {signal.Signals(-code).name})" if code < 0 else f" (exited with code {code})"
        return ""


def shared_java(heap: int) -> Java:
    """Return the Java process of this process, started where there is none or it has ended."""
    key = os.getpid(), heap
    with _LOCK:
        java = _SHARED.get(key)
        if java is None or java.has_ended:
            java = _SHARED[key] = Java(heap)
        return java


def find_java() -> str:
    """Return the program to start; ConfigurationError, with what to type, where there is none."""
    home = os.environ.get("JAVA_HOME")
    path = (shutil.which("java", path=str(Path(home, "bin"))) if home else None) or shutil.which("java")
    if path is None:
        raise ConfigurationError(
            "ScienceWorld runs in Java, and there is no `java` here: type `apt install default-jre-headless` (Debian, "
            "Ubuntu), `brew install openjdk` (macOS) or `conda install openjdk`, or set JAVA_HOME"
        )
    return path


_SHARED: weakref.WeakValueDictionary[tuple[int, int], Java] = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


def _classes() -> str:
    """Return Java's class path: py4j's server first, then ScienceWorld."""
    import py4j
    from scienceworld.constants import JAR_PATH

    above = Path(str(py4j.__file__)).resolve().parents
    folders = [root / "share" / "py4j" for root in (*above[1:5], Path(sys.prefix))]
    servers = [jar for folder in folders for jar in sorted(folder.glob("py4j*.jar"))]
    if not servers:
        raise ConfigurationError("py4j is installed without its jar: pip install --force-reinstall py4j")
    return os.pathsep.join((str(servers[0]), JAR_PATH))


def _greeting(output: int) -> tuple[int, str]:
    """Return port and password, which Java prints; then its output is closed, and what it prints goes nowhere."""
    text, deadline = b"", time.monotonic() + START_SECONDS
    try:
        while True:
            lines = text.decode(errors="replace").split("\n")
            port = next((i for i, line in enumerate(lines[:-2]) if line.strip().isdigit()), None)
            if port is not None:  # notes of Java's own may come before
                return int(lines[port]), lines[port + 1].strip()
            left = deadline - time.monotonic()
            came = os.read(output, 4096) if left > 0 and select.select([output], [], [], left)[0] else b""
            if not came:
                reason = " ".join(text.decode(errors="replace").split())[:300] or f"nothing within {START_SECONDS:g} s"
                raise SimulatorError(f"ScienceWorld's Java process did not start; it says: {reason}")
            text += came
    finally:
        os.close(output)


def _end(process: subprocess.Popen[bytes], keep_alive: int, owner: int) -> None:
    if os.getpid() != owner:  # a fork of the owner has these, but the process is not its own
        return
    os.close(keep_alive)
    process.kill()
    process.wait()
