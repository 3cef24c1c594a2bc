"""Scratch: a folder for temporary files, which the next process removes where this one is killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

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
