"""Start of worker processes, from a thread that lives as long as this process, and folders for what they leave.

Linux ties "die with your parent" to the thread that started the child, and the caller's thread may end earlier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
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


_PREFIX = "magrounding-scratch-"


class Scratch:
    """A new folder of temporary files, until `remove`. Those that killed processes have left are removed before.

    A lock on a folder says that its process lives, whatever its id is: containers may share the place. It is hidden
    until it is locked, so that no process takes a new one for an old one.
    """

    def __init__(self) -> None:
        place = Path(tempfile.gettempdir())
        for old in place.glob(f"{_PREFIX}*"):
            _sweep(old)
        made = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=place))
        self._lock = os.open(made, os.O_RDONLY)
        _locked(self._lock)
        self.path = made.rename(place / made.name.removeprefix("."))

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _sweep(folder: Path) -> None:
    """Remove a folder of this user whose process has ended; a link is not followed."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    if os.fstat(handle).st_uid == os.getuid() and _locked(handle):
        shutil.rmtree(folder, ignore_errors=True)
    os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open folder; False where it is locked, as its process lives, or where there are no locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # Windows, and file systems without locks: nothing is removed there
        return False
    return True
