"""Files that are whole or absent: written beside their place, flushed to disk, then moved there in one operation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError


def user_cache() -> Path:
    """Where this package keeps what it can compute again."""
    return Path.home() / ".cache" / "magrounding"


def write_atomic(path: Path, data: bytes | str) -> None:
    """Put `data` at `path`; whatever stops it (no space, a kill) leaves the old file, or none.

    Raises:
        OSError: the disk refused.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")  # several processes may write the same file
    try:
        with partial.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def write_json(path: Path, content: Any) -> None:
    """Put `content` at `path` as indented JSON, atomically."""
    write_atomic(path, json.dumps(content, indent=2) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object at `path`; CheckpointError where it is missing or is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing: this is not the folder of a run, or a part of it was lost") from None
    except ValueError:
        raise CheckpointError(f"{path} is damaged: it is not JSON") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} is damaged: expected a JSON object, found {type(content).__name__}")
    return content


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the platform can open folders."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
