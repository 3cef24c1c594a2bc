"""MetricsLog: one JSON object a line, and the same numbers for TensorBoard."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from magrounding.errors import CheckpointError

METRICS_FILE = "metrics.jsonl"
TENSORBOARD_FOLDER = "tensorboard"


class MetricsLog:
    """Appends lines of metrics and mirrors them to TensorBoard.

    `metrics.jsonl` is the truth. A resumed run cuts it back to where its checkpoint stood and writes TensorBoard's
    files anew from it, so neither shows a step twice.

    Args:
        folder: where both go.
        size: bytes of `metrics.jsonl` that hold; what lies beyond was written after the checkpoint and is cut off.
    """

    def __init__(self, folder: Path, size: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / METRICS_FILE
        if size > (self.path.stat().st_size if self.path.exists() else 0):
            raise CheckpointError(f"{self.path} is shorter than its run's checkpoint says: it was cut or replaced")
        self._file = self.path.open("ab")
        self._file.truncate(size)
        shutil.rmtree(folder / TENSORBOARD_FOLDER, ignore_errors=True)
        self._board = SummaryWriter(folder / TENSORBOARD_FOLDER)
        for line in read_metrics(self.path):
            self._mirror(line)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line; it needs "kind", "stage", "phase" and "total_steps"."""
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        self._mirror(line)

    def sync(self) -> int:
        """Bring everything to the disk and return the size in bytes, for a checkpoint."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._board.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        self._board.close()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _mirror(self, line: Mapping[str, Any]) -> None:
        place = f"{line['stage']}/{line['phase']}"
        if line["kind"] == "evaluation":
            place = f"{place}/{line['set']} {line['when']}, {line['play']}, manual {line['manual']}"
        for name, value in line.items():
            if isinstance(value, float):
                self._board.add_scalar(f"{place}/{name}", value, line["total_steps"])


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; a last line that a kill cut short is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return
