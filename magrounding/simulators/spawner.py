"""Start of worker processes, from a thread that lives as long as this process.

Linux ties "die with your parent" to the thread that started the child, and the caller's thread may end earlier.
"""

from __future__ import annotations

import os
import subprocess
import threading
from concurrent.futures import Future
from queue import SimpleQueue

from magrounding.simulators.faults import SimulatorError

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Workers share the cores among simulators; their libraries start no threads unless the user sets these."""

_Request = tuple[list[str], tuple[int, ...], str, Future]

_lock = threading.Lock()
_requests: dict[int, SimpleQueue[_Request]] = {}
"""The thread's queue, by process id: a fork of this process has no such thread."""


def spawn(command: list[str], files: tuple[int, ...], folder: str = "") -> subprocess.Popen[bytes]:
    """Start a process that inherits some descriptors; SimulatorError where the system refuses.

    Its temporary files go to `folder`, or with "" to where those of this process go.
    """
    with _lock:
        if os.getpid() not in _requests:
            queue = _requests[os.getpid()] = SimpleQueue()
            threading.Thread(target=_serve, args=(queue,), name="spawner", daemon=True).start()
    result: Future[subprocess.Popen[bytes]] = Future()
    _requests[os.getpid()].put((command, files, folder, result))
    try:
        return result.result()
    except OSError as error:
        raise SimulatorError(f"a worker process could not be started: {error}") from error


def _serve(requests: SimpleQueue[_Request]) -> None:
    while True:
        command, files, folder, result = requests.get()
        environment = dict.fromkeys(ONE_THREAD, "1") | os.environ | ({"TMPDIR": folder} if folder else {})
        try:
            # Of a process group of its own: Ctrl-C on the terminal passes it by, and its own children die with it.
            result.set_result(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=files, process_group=0, env=environment)
            )
        except OSError as error:
            result.set_exception(error)
        del result  # this thread waits for long, and must not be what keeps the process
