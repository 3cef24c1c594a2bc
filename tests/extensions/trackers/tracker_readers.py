"""What trackers' own files say of a run: metric → {step: value}. A step that is there twice is an AssertionError."""

from __future__ import annotations

import json
import os
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Curves = dict[str, dict[int, float]]

SERVICES = ("wandb", "mlflow", "trackio")


def environment(folder: Path) -> dict[str, str]:
    """The environment in which each of SERVICES keeps everything in a folder, and asks nobody."""
    return {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_DISABLE_SENTRY": "true",
        "MLFLOW_TRACKING_URI": (folder / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "TRACKIO_DIR": str(folder / "trackio"),
        "HF_HUB_OFFLINE": "1",
    }


def read_tensorboard(folder: Path, project: str, name: str, store: Path) -> Curves:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0}).Reload()
    found = ((tag, each.step, each.value) for tag in board.Tags()["scalars"] for each in board.Scalars(tag))
    return _curves(found)


def read_wandb(folder: Path, project: str, name: str, store: Path) -> Curves:
    from wandb.proto.wandb_internal_pb2 import Record

    (file,) = (folder / "wandb").glob(f"offline-run-*-{name}/run-{name}.wandb")

    def found() -> Iterator[tuple[str, int, float]]:
        for data in _records(file.read_bytes()):
            record = Record.FromString(data)
            if record.WhichOneof("record_type") == "run":
                assert (record.run.project, record.run.display_name) == (project, name)
            if record.WhichOneof("record_type") == "history":
                values = {each.key or each.nested_key[0]: json.loads(each.value_json) for each in record.history.item}
                step = record.history.step.num
                assert values.get("_step", step) == step
                yield from ((key, step, value) for key, value in values.items() if not key.startswith("_"))

    return _curves(found())


def _records(data: bytes) -> Iterator[bytes]:
    """The records of a file of W&B: 7 bytes, then LevelDB's log format."""
    assert data.startswith(b":W&B")
    at, parts = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        _, length, kind = struct.unpack("<IHB", data[at : at + 7])
        parts += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def read_mlflow(folder: Path, project: str, name: str, store: Path) -> Curves:
    from mlflow import MlflowClient

    client = MlflowClient((store / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name(project).experiment_id])
    assert (run.info.run_name, run.info.status) == (name, "FINISHED")
    assert run.data.params["network.hidden"] == "8"
    names = [each for each in run.data.metrics if each != "total_steps"]
    history = ((each, point) for each in names for point in client.get_metric_history(run.info.run_id, each))
    return _curves((each, point.step, point.value) for each, point in history)


def read_trackio(folder: Path, project: str, name: str, store: Path) -> Curves:
    from trackio.sqlite_storage import SQLiteStorage

    assert SQLiteStorage.get_runs(project) == [name]
    lines = SQLiteStorage.get_logs(project, name, max_points=None)
    shown = [({k: v for k, v in line.items() if k not in ("step", "timestamp")}, line["step"]) for line in lines]
    return _curves((tag, step, value) for line, step in shown for tag, value in line.items())


READERS = {
    "tensorboard": read_tensorboard,
    "wandb": read_wandb,
    "mlflow": read_mlflow,
    "trackio": read_trackio,
}


def _curves(found: Iterator[tuple[str, int, float]]) -> Curves:
    curves: Curves = defaultdict(dict)
    for tag, step, value in found:
        assert step not in curves[tag], f"{tag} has step {step} twice"
        curves[tag][step] = value
    return dict(curves)
