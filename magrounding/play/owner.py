"""RunOwner: one process at a time writes into a folder of results, and a process that was killed owns nothing."""

from __future__ import annotations

import io
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from magrounding.errors import CheckpointError
from magrounding.play.run_folder import RunFolder
from magrounding.signals import GONE_HOSTS
from magrounding.storage import SEAL, check_place, check_regular, digest, json_text, naming, parse_json, reason

_PATIENCE_SECONDS, _LOOK_SECONDS = 60.0, 0.2
"""Seconds that a process that takes over waits for another to end, and between two looks at it."""
_MOST = 2**16
"""Bytes of a record at most."""


@dataclass(frozen=True)
class Process:
    """A process, such that no other is taken for it.

    Attributes:
        host: name of the machine.
        pid: its id there.
        began: when it began, as the machine reports it: ids are used again.
        since: when it took the folder, for people.
    """

    host: str
    pid: int
    began: str
    since: str

    @classmethod
    def this(cls) -> Process:
        """The one that runs this."""
        now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
        return cls(platform.node(), os.getpid(), _began(os.getpid()) or "", now)

    @property
    def alive(self) -> bool:
        """The process still runs; for one of this host."""
        if os.name == "posix":  # elsewhere signal 0 ends a process
            try:
                os.kill(self.pid, 0)
            except ProcessLookupError:
                return False
            except PermissionError:  # another user's: it is there
                pass
        began = _began(self.pid)
        return began is None or began == self.began  # what cannot be seen has to be taken for alive

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class RunOwner:
    """Ownership of a folder by this process, while entered.

    `owner.json` names the owner. It is read and written under a lock of the operating system (`flock`), so of two
    processes that find a dead owner one gets the folder. A file system without such locks has only the file.

    Args:
        folder: of the run, or of what a server keeps; made where it is missing.
        holds: what error messages call its content.

    Raises:
        CheckpointError: another process owns it, or one of another host, where it cannot be seen whether it still runs.
        OSError: the disk refused.
    """

    def __init__(self, folder: RunFolder, holds: str = "the run") -> None:
        self.folder, self._holds = folder, holds
        self._record = b""

    def __enter__(self) -> RunOwner:
        self.folder.path.mkdir(parents=True, exist_ok=True)
        path = self.folder.owner
        until = time.monotonic() + (_PATIENCE_SECONDS if GONE_HOSTS in os.environ else 0.0)
        while True:
            try:
                self._take(path)
                return self
            except CheckpointError:
                if time.monotonic() >= until:
                    raise
            time.sleep(_LOOK_SECONDS)

    def _take(self, path: Path) -> None:
        """Become the owner; CheckpointError where there is another."""
        with _locked(path) as file:
            _check_free(path, file.read(), self._holds)
            content = asdict(Process.this())
            self._record = json_text({**content, SEAL: digest(content)}).encode()
            with naming(path):
                file.truncate(0)
                file.seek(0)
                file.write(self._record)  # not synced: a power cut ends the owner too

    def __exit__(self, *_: object) -> None:
        path = self.folder.owner
        if not path.exists():  # moved or removed meanwhile: there is nothing to give back
            return
        with _locked(path) as file:
            if file.read() in (self._record, b""):
                file.truncate(0)
                with suppress(PermissionError):  # Windows removes no open file; empty, it names nothing
                    path.unlink()


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
            raise CheckpointError(f"{out} exists already: name another file with --out")
        yield


def _check_free(path: Path, data: bytes, holds: str) -> None:
    """Raise CheckpointError where the owner in a file is alive or cannot be checked; an empty file names none."""
    if not data:
        return
    try:
        content = parse_json(data)
        intact = content.pop(SEAL) == digest(content)
        owner = Process(**content) if intact else None
    except (ValueError, TypeError, KeyError, AttributeError):
        owner = None
    if owner is None:
        raise CheckpointError(f"{path} is damaged and names no process: delete it, if none writes into this folder")
    if owner.host != platform.node():
        if owner.host in os.environ.get(GONE_HOSTS, "").split(","):
            return
        raise CheckpointError(
            f"{holds} in {path.parent} belongs to {owner}, and whether that still runs cannot be seen from "
            f"{platform.node()}: if it does not, delete {path}"
        )
    if owner.alive:
        raise CheckpointError(
            f"{holds} in {path.parent} is running ({owner}): wait for it, stop it, or name another with --out"
        )


@contextmanager
def _locked(path: Path) -> Iterator[io.FileIO]:
    """The open file, made where it is missing, while no other process has it locked."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)
        with io.FileIO(os.open(path, flags, 0o666), "r+") as file:
            try:
                check_regular(file.fileno(), path, _MOST)
            except OSError as error:
                raise CheckpointError(f"{path} cannot name a process ({reason(error)}): delete it") from None
            with suppress(ImportError, OSError):  # Windows, and file systems without locks
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_at(file.fileno(), path):  # else its owner removed it while this process waited
                yield file
                return


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _began(pid: int) -> str | None:
    """Return the start time of a process of this host; "" of one that has ended, None where it cannot be seen."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if state in "ZX" else f"{boot} {fields[18]}"  # clock ticks since the machine started
    except OSError:
        pass
    try:
        line = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
