"""ForkServer: a process that has imported what trains, and becomes a job each time that it is asked to.

To import torch, numba and this package takes four seconds of processor time, which jobs of a few minutes feel. The
process computes nothing, and so has no threads that a fork would lose. That of `multiprocessing` ends when its terminal
is closed, and with it the exit codes of jobs that save their states at that moment.
"""

from __future__ import annotations

import gc
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self

from magrounding.signals import CTRL_C, JOB, OTHERS
from magrounding.storage import json_text, parse_json

IMPORTED = ("magrounding.cli.train", "torch._dynamo", "torch.utils.tensorboard") if sys.platform == "linux" else ()
"""Modules whose imports take long; torch's optimizers import `_dynamo`. On macOS a fork may lose what torch loads."""


class ForkServer:
    """The process that jobs are forked from; it ends when this process and all of its jobs have ended.

    Args:
        environment: variables beside those of this process.
        cwd: the folder that jobs work in, by default this process's.

    It has a session of its own, so that no signal of a terminal reaches it.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, *IMPORTED],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
                cwd=cwd,
            )

    def fork(self, argv: Sequence[str], progress: Path, log: IO[bytes]) -> socket.socket:
        """Start a job that runs a module of Python.

        Args:
            argv: the module's name, and its arguments.
            progress: file of how far it is (`signals.JOB`).
            log: its output.

        Returns:
            The other end of its standard input. From there come two lines: the id of its process, and, when it has
            ended, its exit code, or minus the signal that ended it. Nothing comes from a server that was killed.
        """
        line, theirs = socket.socketpair()
        with theirs, suppress(ConnectionError):
            line.sendall(f"{json_text([str(progress.absolute()), *argv], compact=True)}\n".encode())
            socket.send_fds(self._requests, [b"\n"], [theirs.fileno(), log.fileno()])
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._requests.close()
        self._process.wait()


def serve(modules: Sequence[str]) -> None:
    """Import modules, and fork for each request of the standard input, until it is closed and all jobs have ended."""
    for name in modules:
        with suppress(Exception):  # a job that imports it fails with an error message in its log
            import_module(name)
    gc.freeze()  # else collections in a job write to, and so copy, what it shares with the others
    handlers: Mapping[int, Any] = {each: signal.signal(each, signal.SIG_IGN) for each in (CTRL_C, *OTHERS)}
    requests = socket.socket(fileno=os.dup(0))
    while (request := socket.recv_fds(requests, 1, 2))[0]:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        line, log = request[1]
        if child := os.fork() == 0:
            requests.close()
            for here, there in ((line, 0), (log, 1), (log, 2)):
                os.dup2(here, there)
        os.close(line)
        os.close(log)
        if child:
            return watched(handlers)
    with suppress(ChildProcessError):
        while True:
            os.wait()


def watched(handlers: Mapping[int, Any]) -> None:
    """Run a job in a child of this process, which tells the standard input, a socket, how it ends."""
    job = os.fork()
    if job == 0:
        return run(handlers)
    try:
        os.write(0, b"%d\n" % job)
        ended = os.waitpid(job, 0)[1]
        os.write(0, b"%d\n" % os.waitstatus_to_exitcode(ended))
    finally:
        os._exit(0)


def run(handlers: Mapping[int, Any]) -> None:
    """Run the module that the first line of the standard input names, as `python -m` does."""
    os.setsid()
    for signum, handler in handlers.items():
        signal.signal(signum, handler)
    with open(0, "rb", buffering=0, closefd=False) as file:
        os.environ[JOB], *sys.argv = parse_json(file.readline())
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    serve(sys.argv[1:])
