"""TensorBoard: a file of events in the seed's folder, `tensorboard --logdir runs`."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class TensorBoard:
    """Events as they come, without the thread of `SummaryWriter`, which prints a traceback where the disk refuses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = vars(event_pb2)["Event"]  # made as it is imported: type checkers do not see them
        self._summary: Any = vars(summary_pb2)["Summary"]
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        file = f"events.out.tfevents.{int(time.time()):010d}.{platform.node()}.{os.getpid()}"
        self._file = (self._folder / file).open("wb")
        self._records = RecordWriter(self._file)
        self._write(file_version="brain.Event:2")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        values = [self._summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        self._write(summary=self._summary(value=values), step=step)

    def close(self) -> None:
        self._file.close()

    def _write(self, **content: Any) -> None:
        self._records.write(self._event(wall_time=time.time(), **content).SerializeToString())
        self._records.flush()  # a full disk refuses this; without a buffer it takes a part of a record in silence
