"""MetricsLog: one JSON object a line, and the same numbers for TensorBoard."""

from __future__ import annotations

import os
import platform
import shutil
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError
from magrounding.play.run_folder import SeedFolder
from magrounding.storage import LINES, json_text, naming, parse_json, read_bytes, reason

CHECK = "check"
"""Last entry of every line: CRC-32 of the file up to there, checks left out; a line changed, lost or doubled shows."""
_BEFORE_CHECK = f', "{CHECK}": "'.encode()
_CHECK_LENGTH = len(b'01234567"}')


class MetricsLog:
    """Appends lines of metrics and mirrors them to TensorBoard.

    `metrics.jsonl` is the truth. A resumed run cuts it back to where its checkpoint stood and writes TensorBoard's
    files anew from it, so neither shows a step twice. Events are written as they come, without the thread of
    `SummaryWriter`, which prints a traceback of its own where the disk refuses.

    Args:
        folder: of the seed, where both go.
        size: bytes of `metrics.jsonl` that hold; what lies beyond was written after the checkpoint and is cut off.

    Raises:
        CheckpointError: fewer bytes than that, or damaged ones; the file is left as it was.
    """

    def __init__(self, folder: SeedFolder, size: int = 0) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        self.path = folder.metrics
        data = _read(self.path)[:size] if self.path.exists() else b""
        if len(data) < size:
            raise CheckpointError(f"{self.path} is shorter than its run's checkpoint says: it was cut or replaced")
        lines, rest, self._check = _parse(data, self.path)
        if rest:
            raise _damaged(self.path, len(lines) + 1)
        self._file = self.path.open("ab", buffering=0)  # what a full disk refused is not tried again on closing
        self._file.truncate(size)
        self._board_folder = folder.tensorboard
        shutil.rmtree(self._board_folder, ignore_errors=True)
        self._board = _Board(self._board_folder)
        for line in lines:
            self._mirror(line)

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
        self._mirror(line)

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
        self._board.close()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _mirror(self, line: Mapping[str, Any]) -> None:
        place = f"{line['stage']}/{line['phase']}"
        if line["kind"] == "evaluation":
            place = f"{place}/{line['set']} {line['when']}, {line['play']}, manual {line['manual']}"
        with naming(self._board_folder):
            for name, value in line.items():
                if isinstance(value, float):
                    self._board.add(f"{place}/{name}", value, line["total_steps"])


class _Board:
    """A file of TensorBoard's events in a folder, which is made."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = vars(event_pb2)["Event"]  # made as it is imported: type checkers do not see them
        self._summary: Any = vars(summary_pb2)["Summary"]
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{platform.node()}.{os.getpid()}"
        self._file = (folder / name).open("wb", buffering=0)
        self._records = RecordWriter(self._file)
        self._write(file_version="brain.Event:2")

    def add(self, tag: str, value: float, step: int) -> None:
        scalar = self._summary.Value(tag=tag, simple_value=value)
        self._write(summary=self._summary(value=[scalar]), step=step)

    def close(self) -> None:
        self._file.close()

    def _write(self, **content: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **content).SerializeToString())


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`, none where there is no file; a last line that a kill cut short is left out.

    Raises:
        CheckpointError: a line is not what was written.
    """
    if not path.exists():
        return []
    lines, rest, _ = _parse(_read(path), path)
    _, found, check = rest.rpartition(_BEFORE_CHECK)
    if found and len(check) > _CHECK_LENGTH:  # not cut short: its end was overwritten
        raise _damaged(path, len(lines) + 1)
    return lines


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, LINES)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}") from None


def _parse(data: bytes, path: Path) -> tuple[list[dict[str, Any]], bytes, int]:
    """Whole lines without their checks, what follows the last of them, and the last check."""
    *whole, rest = data.split(b"\n")
    checked, check, lines = _BEFORE_CHECK in data, 0, []
    for number, line in enumerate(whole, 1):
        if checked:
            body, _, written = line.rpartition(_BEFORE_CHECK)
            check = zlib.crc32(body, check)
            if written != f'{check:08x}"}}'.encode():
                raise _damaged(path, number)
        try:
            content = parse_json(line)
        except ValueError:
            raise _damaged(path, number) from None
        if not isinstance(content, dict) or "kind" not in content:
            raise _damaged(path, number)
        content.pop(CHECK, None)
        lines.append(content)
    return lines, rest, check


def _damaged(path: Path, number: int) -> CheckpointError:
    return CheckpointError(f"{path} is damaged: line {number} is not what was written; restore it, or train again")
