"""Files: paths and texts as people write them; files that are whole or absent; and the one way to read a file.

Files are written beside their place, flushed to disk, then moved there in one operation. What is read is a regular file
of a bounded size (`read_bytes`), and JSON or TOML of a bounded depth (`parse_json`, `parse_toml`): a pipe would wait
for ever, a device never ends, and a sparse file of gigabytes costs its author nothing.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError, ConfigurationError, MagroundingError, check_choice

WRONG_JSON = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors of a user's JSON: no JSON, too deep, too large numbers, or missing entries."""

NOTE, RECORD, LINES, ARRAYS = 2**20, 2**26, 2**30, 2**31
"""Bytes that a file has at most: a text that a person wrote; JSON; lines of JSON, one a game or an update; and weights
or demonstrations. A state of a run holds replay buffers too: it may be as large as memory (`machine_memory`)."""
_DEEPEST = 64
"""Levels of lists and tables in JSON and TOML."""
SEAL = "sha256"
"""Entry of a sealed JSON file: the digest of all others."""

_UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EACCES, errno.EPERM)
"""Answers of file systems, many over a network, that flush no folders: files are flushed all the same."""


def user_cache() -> Path:
    """Return the folder of files that can be computed again: in XDG_CACHE_HOME, or ~/.cache."""
    return _of_user("XDG_CACHE_HOME", ".cache")


def user_data() -> Path:
    """Return the folder of files that a user made: in XDG_DATA_HOME, or ~/.local/share."""
    return _of_user("XDG_DATA_HOME", ".local/share")


def _of_user(variable: str, below: str) -> Path:
    """A folder of the user; a temporary one where the user has no home, or cannot write there, as in containers."""
    given = Path(os.environ.get(variable, ""))  # the standard says: one that is not absolute counts for nothing
    if given.is_absolute():
        return given / "magrounding"
    with suppress(RuntimeError, OSError):  # no home, or one that the user may not enter
        folder = Path.home() / below / "magrounding"
        nearest = next(each for each in (folder, *folder.parents) if each.exists())
        if nearest.is_dir() and os.access(nearest, os.W_OK):
            return folder
    if (temporary := own_temporary("magrounding")) is None:
        raise ConfigurationError(f"there is no folder for the files of this user: name one by {variable}")
    return temporary


def own_temporary(name: str) -> Path | None:
    """A folder for temporary files that only this user can write to; None where there is none.

    Numba unpickles what it finds in a cache, so a folder that other users could write to would run their code.
    """
    if not hasattr(os, "getuid"):
        return None
    try:
        folder = Path(tempfile.gettempdir()) / f"{name}-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return folder if own else None


EXAMPLE = "example:"
"""Prefix of a file that comes with the package, as in `example:moves.txt`."""


def user_path(path: str | os.PathLike[str]) -> Path:
    """The path that a user names, "~" being a home, EXAMPLE the package's own files; ConfigurationError for neither."""
    text = os.fsdecode(path)
    if text.startswith(EXAMPLE):
        folder = Path(__file__).with_name("examples")
        known = sorted(each.name for each in folder.iterdir())
        return folder / check_choice("example", text.removeprefix(EXAMPLE), known)
    if "\0" in text:
        raise ConfigurationError(f"{text!r} is no path: it has a character that no file's name can have")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigurationError(f"{text!r} names the home of a user that there is not: name the folder") from None


def reason(error: OSError) -> str:
    """Say in words what stopped an operation on a file."""
    return error.strerror or str(error)


@contextmanager
def open_regular(path: Path, most: int) -> Iterator[io.BufferedReader]:
    """Open a regular file of at most `most` bytes to read it; OSError, whose `strerror` says why, for another."""
    with open(path, "rb", opener=_open_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"it has {found.st_size:,} bytes, and may have {most:,}", str(path))
        yield file


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, as a pipe would have us do for somebody who writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read_bytes(path: Path, most: int = RECORD) -> bytes:
    """What a regular file of at most `most` bytes holds as it is opened; OSError as of `open_regular`."""
    with open_regular(path, most) as file:
        return file.read(os.fstat(file.fileno()).st_size)  # it may grow meanwhile


def require_bytes(
    path: Path,
    most: int = RECORD,
    *,
    missing: MagroundingError | None = None,
    refused: type[MagroundingError] = CheckpointError,
) -> bytes:
    """`read_bytes` of a file that has to be there: an error that says why it cannot be read, or that it is missing."""
    try:
        return read_bytes(path, most)
    except OSError as error:
        if missing is not None and isinstance(error, FileNotFoundError):
            raise missing from None
        raise refused(f"{path} cannot be read: {reason(error)}") from None


def text_of(data: bytes) -> str:
    """The text of a file in UTF-8, without the byte-order mark of editors; UnicodeDecodeError for another encoding."""
    return data.decode("utf-8-sig")


def read_text(path: Path, most: int = RECORD) -> str:
    """`text_of` a file, line ends as they are; OSError as of `read_bytes`."""
    return text_of(read_bytes(path, most))


def unpacked(data: bytes, most: int = RECORD) -> bytes:
    """Unpack gzip's data to at most `most` bytes; ValueError for more, OSError and EOFError for what is damaged."""
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it unpacks to more than {most:,} bytes")
    return content


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; ValueError for what is none, or has lists and objects more than 64 levels deep."""
    return _shallow(json.loads, text)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; ValueError for what is none, has tables more than 64 levels deep, or an integer no one can print."""
    content = _shallow(tomllib.loads, text)
    repr(content)  # an error would: Python refuses thousands of digits, which TOML has in hexadecimal
    return content


def _shallow(parse: Callable[[Any], Any], text: str | bytes) -> Any:
    """What a text holds, of at most _DEEPEST levels: else printing it in an error would be an error too."""
    with suppress(RecursionError):
        content = parse(text)
        level: list[Any] = [content]
        for _ in range(_DEEPEST + 1):
            level = [each for each in level if isinstance(each, dict | list)]
            if not level:
                return content
            level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    raise ValueError("it is nested too deep")


def lines_of(text: str) -> list[str]:
    """The lines of a text, ended by a line feed, before which Windows has a carriage return; nothing else ends one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def partial_path(path: Path, mark: str = "") -> Path:
    """A new name beside a file or folder, for content that is not whole yet; two containers may have one process id."""
    return path.with_name(f".{path.name}.{mark or secrets.token_hex(4)}.partial")


def write_atomic(path: Path, data: bytes | str, *, private: bool = False, new: bool = False) -> None:
    """Put `data` at `path`; what stops it (OSError with the file's name; a kill) leaves the old file, or none.

    Args:
        path: its folder is made where it is missing.
        data: texts are written as UTF-8.
        private: no other user may read the file, or the folder that is made for it.
        new: FileExistsError where the file is there, or another process is writing it as a new one at this moment.
    """
    path.parent.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    # Several processes may write the same file; what is new has one name for all, so that one of them gets it.
    partial = partial_path(path, "0" if new else "")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with naming(path):
        handle = os.open(partial, flags, 0o600 if private else 0o666)
    try:
        with naming(path), os.fdopen(handle, "wb") as file:
            if new and os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextmanager
def write_folder(path: Path) -> Iterator[Path]:
    """The folder to fill, which is moved to `path` in the end; what stops it leaves no folder there.

    What an earlier attempt left is removed, so no other process may be at the same. OSError where `path` exists.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.iterdir():
        if left.is_dir() and re.fullmatch(rf"\.{re.escape(path.name)}\.[0-9a-f]+\.partial", left.name):
            shutil.rmtree(left)
    partial = partial_path(path)
    partial.mkdir()
    try:
        yield partial
        _sync_folder(partial)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    _sync_folder(path.parent)


def check_place(path: Path) -> None:
    """Raise CheckpointError where no file can be written to `path`: before hours of work that would end there.

    Folders that are missing are not made: whatever is refused next leaves nothing behind.
    """
    partial = partial_path(path.absolute())  # the longest name: `write_atomic`
    there = next((folder for folder in partial.parents if os.path.lexists(folder)), Path(partial.anchor))
    try:
        for name in partial.relative_to(there).parts:
            with suppress(FileNotFoundError):
                (there / name).lstat()  # refused where a name is too long, or `there` is a file
        with tempfile.TemporaryFile(dir=there):
            pass
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written ({reason(error)}): name another file with --out") from None


def remove_partial(folder: Path, *, below: bool = True) -> None:
    """Remove what killed saves left in a folder, and `below` it, into which no other process writes."""
    for path in folder.glob("**/.*.partial" if below else ".*.partial"):
        if re.fullmatch(r"\..+\.[0-9a-f]+\.partial", path.name) and path.is_file():
            path.unlink(missing_ok=True)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Make an error of the disk name the file: those of writing and flushing name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def json_text(content: Any, *, indent: int | None = None, compact: bool = False, sort_keys: bool = False) -> str:
    """Content as JSON that every reader takes: what is no finite number (NaN, ±∞) is null, as JSON has none.

    Args:
        content: dictionaries, lists, strings and numbers.
        indent, sort_keys: as of `json.dumps`.
        compact: no spaces at all.
    """
    layout: dict[str, Any] = {"indent": indent, "sort_keys": sort_keys, "separators": (",", ":") if compact else None}
    try:
        return json.dumps(content, allow_nan=False, **layout)
    except ValueError:  # rare, and looking for it takes longer than writing
        return json.dumps(_finite(content), allow_nan=False, **layout)


def _finite(content: Any) -> Any:
    """Content with None in the place of what is no finite number."""
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {name if not isinstance(name, float) else str(name): _finite(value) for name, value in content.items()}
    return [_finite(each) for each in content] if isinstance(content, list | tuple) else content


def write_json(path: Path, content: Mapping[str, Any], *, sealed: bool = False) -> None:
    """Put `content` at `path` as indented JSON, atomically; sealed, `read_json` notices every change of a value."""
    seal = {SEAL: digest(content)} if sealed else {}
    write_atomic(path, json_text({**content, **seal}, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object at `path`, without its seal; CheckpointError where it is missing, no object, or altered."""
    lost = CheckpointError(f"{path} is missing: this is not the folder of a run, or a part of it was lost")
    data = require_bytes(path, missing=lost)
    try:
        content = parse_json(text_of(data))
        entries = content.items()
    except (ValueError, AttributeError):
        raise CheckpointError(f"{path} is damaged: it is no JSON object") from None
    seal = SEAL if SEAL in content else next(reversed(content), "")  # its name may be what was damaged
    rest = {name: value for name, value in entries if name != seal}
    if (content.get(seal) == digest(rest)) != (seal == SEAL):
        raise CheckpointError(f"{path} is damaged: it does not hold what was written; restore it, or train again")
    return rest if seal == SEAL else content


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of JSON-able content, whatever the order of its entries."""
    plain = json.loads(json_text(content))  # keys that are numbers become strings before they are sorted
    return hashlib.sha256(json_text(plain, sort_keys=True).encode()).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where platform and file system can flush folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _UNSYNCED:
            raise
