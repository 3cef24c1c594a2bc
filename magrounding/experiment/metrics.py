"""MetricsLog: one JSON object a line, each with a check."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError
from magrounding.run_folder import SeedFolder
from magrounding.storage import LINES, json_text, naming, parse_json, require_bytes

CHECK = "check"
"""Last entry of every line: CRC-32 of the file up to there, checks left out; a line changed, lost or doubled shows."""
_BEFORE_CHECK = f', "{CHECK}": "'.encode()
_CHECK_LENGTH = len(b'01234567"}')


class MetricsLog:
    """Writer that appends lines of metrics.

    A resumed run cuts the file back to where its checkpoint stood, so it shows no step twice.

    Args:
        folder: of the seed.
        size: bytes of `metrics.jsonl` that hold; what lies beyond was written after the checkpoint and is cut off.
        show: gets every line that holds, then every one that is written.

    Raises:
        CheckpointError: fewer bytes than that, or damaged ones; the file is left as it was.
    """

    def __init__(self, folder: SeedFolder, size: int, show: Callable[[Mapping[str, Any]], object]) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        self.path = folder.metrics
        lines, self._check = _parse(self.path, size)
        self._file = self.path.open("ab", buffering=0)  # what a full disk refused is not tried again on closing
        self._file.truncate(size)
        self._show = show
        for line in lines:
            show(line)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line; it needs "kind", "stage", "phase" and "total_steps".

        Raises:
            OSError: the disk refused; it names the file.
        """
        body = json_text(line).encode()[:-1]
        self._check = zlib.crc32(body, self._check)
        data = body + _BEFORE_CHECK + f'{self._check:08x}"}}\n'.encode()
        with naming(self.path):
            while data:
                data = data[self._file.write(data) :]
        self._show(line)

    def sync(self) -> int:
        """Bring everything to the disk and return the size in bytes, for a checkpoint.

        Raises:
            CheckpointError: the file is no longer at its path; what is written next would be in another folder.
            OSError: the disk refused; it names the file.
        """
        if not (self.path.exists() and os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())):
            raise CheckpointError(
                f"{self.path} was moved or removed while its run trained: put the folder back, and go on with --resume"
            )
        with naming(self.path):
            os.fsync(self._file.fileno())
        return os.fstat(self._file.fileno()).st_size  # the position of a file cut back is still its old end

    def close(self) -> None:
        self._file.close()


def read_metrics(path: Path, size: int | None = None) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`, none where there is no file; a last line that a kill cut short is left out.

    Args:
        path: of the file.
        size: bytes that hold, those of a checkpoint; by default all.

    Raises:
        CheckpointError: a line is not what was written, or the file is shorter than `size`.
    """
    return _parse(path, size)[0]


def _parse(path: Path, size: int | None) -> tuple[list[dict[str, Any]], int]:
    """Lines without their checks, and the last check; the last line may be cut short where no size is given."""
    data = require_bytes(path, LINES)[:size] if path.exists() else b""
    if size and len(data) < size:
        raise CheckpointError(f"{path} is shorter than its run's checkpoint says: it was cut or replaced")
    *whole, rest = data.split(b"\n")
    check, lines = 0, []
    _, found, written = rest.rpartition(_BEFORE_CHECK)
    if rest and (
        size is not None or (found and len(written) > _CHECK_LENGTH)
    ):  # not cut short: its end was overwritten
        whole.append(rest)
    for number, line in enumerate(whole, 1):
        body, _, written = line.rpartition(_BEFORE_CHECK)
        check, content = zlib.crc32(body, check), None
        if written == f'{check:08x}"}}'.encode():
            with suppress(ValueError):
                content = parse_json(line)
        if not isinstance(content, dict) or "kind" not in content:
            raise CheckpointError(
                f"{path} is damaged: line {number} is not what was written; restore it, or train again"
            )
        content.pop(CHECK, None)
        lines.append(content)
    return lines, check
