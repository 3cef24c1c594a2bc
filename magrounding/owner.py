"""RunOwner: one process at a time writes into a folder of results, and a process that was killed owns nothing."""

from __future__ import annotations

import errno
import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from filelock import FileLock, Timeout

from magrounding.errors import CheckpointError
from magrounding.run_folder import RunFolder
from magrounding.signals import TAKES_OVER
from magrounding.storage import NOTE, check_place, json_text, parse_json, read_text, reason

_PATIENCE_SECONDS = 60.0
"""Seconds that a process that takes over waits for another to end."""
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP)


class RunOwner:
    """Ownership of a folder by this process, while entered.

    The owner holds a lock of the operating system on `owner.json` (`filelock`), in whatever container it runs. A kill
    frees the lock, and children of the owner do not hold it. The text in the file tells people who the owner is.

    Args:
        folder: of the run, or of what a server keeps; made where it is missing.
        holds: what error messages call its content.

    Raises:
        CheckpointError: another process owns it.
        OSError: the disk refused.

    Warns:
        UserWarning: the file system has no locks, so other processes are not kept out.
    """

    def __init__(self, folder: RunFolder, holds: str = "the run") -> None:
        self.folder, self._holds = folder, holds
        patience = _PATIENCE_SECONDS if TAKES_OVER in os.environ else 0.0
        self._lock = FileLock(folder.owner, timeout=patience, thread_local=False, fallback_to_soft=False)

    def __enter__(self) -> RunOwner:
        path = self.folder.owner
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout:
            raise CheckpointError(
                f"{self._holds} in {path.parent} is running ({_owner(path)}): wait for it, stop it, or name another "
                "with --out"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            warnings.warn(f"{path} cannot be locked ({reason(error)}): let no other process write there", stacklevel=2)
        since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        self._pid = os.getpid()
        self._record = json_text({"host": platform.node(), "pid": self._pid, "since": since})
        with suppress(OSError):  # such as a full disk: the lock is what counts
            path.write_text(self._record, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        path = self.folder.owner
        with suppress(OSError, ValueError):  # moved or removed meanwhile, or taken by another who found it removed
            if self._pid == os.getpid() and read_text(path, NOTE) in (self._record, ""):
                path.unlink()  # while it is locked: no other process has locked it
        self._lock.release()


@contextmanager
def owned(out: Path, holds: str, *, file: bool = False) -> Iterator[None]:
    """Own the folder `--out` while entered (`RunOwner`); remove it afterwards if it is empty.

    Args:
        out: a folder, or a file, whose record is a hidden file beside it.
        holds: what error messages call its content, such as "the match".
        file: `out` is a file.
    """
    where = RunFolder(out.parent if file else out)
    if file:
        where.owner = out.with_name(f".{out.name}.owner")
    made = [folder for folder in (where.path, *where.path.parents) if not folder.exists()]
    try:
        with RunOwner(where, holds):
            yield
    finally:
        for folder in made:  # from the inside; what holds something stays
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def new_file(out: Path, holds: str) -> Iterator[None]:
    """Own a file that is to be written while entered (`owned`); CheckpointError where it is there, or cannot be."""
    check_place(out)
    with owned(out, f"{holds} {out.name}", file=True):
        if out.exists():
            raise CheckpointError(f"{out} exists already: name another with --out")
        yield


def _owner(path: Path) -> str:
    """The process that a record names, for people."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return "process {pid} on {host}, since {since}".format(**parse_json(read_text(path, NOTE)))
    return "another process"
