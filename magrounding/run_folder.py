"""RunFolder: the files of a training run. Nothing else knows a path inside a run's folder."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from magrounding.agents.weights import STATE_FILE
from magrounding.errors import CheckpointError
from magrounding.output import JOB_LOG, JOB_PROGRESS
from magrounding.pretrained import find_run
from magrounding.storage import read_json, remove_partial, write_json

CONFIG_FILE = "config.json"
OWNER_FILE = "owner.json"
CURVES_FILE = "curves.png"
METRICS_FILE = "metrics.jsonl"
_Baselines = dict[str, dict[str, dict[str, bool | int | float | str | None]]]


def entry_of(content: Mapping[str, Any], name: str, kind: Any) -> Any:
    """An entry of a run's file, an empty `kind` where there is none; CheckpointError for anything else."""
    try:
        return msgspec.convert(content[name], kind) if name in content else kind()
    except (msgspec.ValidationError, UnicodeEncodeError):
        raise CheckpointError(f"the run's folder is damaged: {name} is not what was written") from None


class SeedFolder:
    """The files of one seed of a run.

    Attributes:
        metrics, checkpoint: what it learnt by, and its whole state.
        trackers: which services show it, and by which name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics, self.trackers = path / METRICS_FILE, path / "trackers.json"
        self.checkpoint = path / "checkpoint.safetensors"

    def weights(self, stage: str) -> Path:
        """The folder of the weights after a stage, or after one of its phases, "<stage>/<phase>"."""
        return self.path / stage

    def demonstrations(self, stage: str) -> Path:
        """The file of the expert's games that a stage has recorded to learn from."""
        return self.path / stage / "demonstrations.npz"

    def state(self, stage: str) -> dict[str, Any]:
        """The record of the weights after a stage, which makes them valid."""
        return read_json(self.weights(stage) / STATE_FILE)

    def is_trained(self, stage: str) -> bool:
        """Return whether there are weights after a stage."""
        return (self.weights(stage) / STATE_FILE).exists()

    def trained_phases(self) -> list[str]:
        """All weights after phases that do not end a stage, as "<stage>/<phase>"."""
        return sorted(file.parent.relative_to(self.path).as_posix() for file in self.path.glob(f"*/*/{STATE_FILE}"))

    def has_weights(self) -> bool:
        """Return whether there are weights of any stage or phase."""
        return bool(self.trained_phases()) or any(self.path.glob(f"*/{STATE_FILE}"))


class RunFolder:
    """The files of a run, whose folder `path` need not exist."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file, self.owner = path / CONFIG_FILE, path / OWNER_FILE
        self.report, self.curves = path / "report.md", path / CURVES_FILE
        self.baselines_file = path / "baselines.json"

    @classmethod
    def find(cls, source: str | PathLike[str]) -> RunFolder:
        """The folder that a source stands for; ConfigurationError for none, see `pretrained.find_run`."""
        return cls(find_run(source))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def holds_run(self) -> bool:
        """True once a run has begun here."""
        return self.config_file.exists()

    def config(self) -> dict[str, Any]:
        """The content of `config.json`; CheckpointError where there is no run, or it is damaged."""
        return read_json(self.config_file)

    def write_config(self, content: dict[str, Any]) -> None:
        """Write `config.json`, which makes this a run's folder."""
        write_json(self.config_file, content, sealed=True)

    def baselines(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Summaries of other players' games so far: "stage/set" → player → summary."""
        path = self.baselines_file
        content = read_json(path) if path.exists() else {}
        return entry_of({str(path): content}, str(path), _Baselines)

    def write_baselines(self, content: dict[str, Any]) -> None:
        write_json(self.baselines_file, content, sealed=True)

    def seed(self, seed: int | str, num_seeds: int) -> SeedFolder:
        """The files of one of the run's seeds: the run folder itself, or `seed_<k>/` where there are several."""
        return SeedFolder(self.path if num_seeds == 1 else self.path / f"seed_{seed}")

    def of_seeds(self, seeds: Collection[int]) -> dict[int, SeedFolder]:
        """Seed → its files, for all `seeds` of the run."""
        return {seed: self.seed(seed, len(seeds)) for seed in seeds}

    def remove_partial(self, *, below: bool = True) -> None:
        """Delete what a process that was killed has left half written, here and in the folders `below`."""
        remove_partial(self.path, below=below)

    def refuse_foreign(self) -> None:
        """Raise CheckpointError for a folder that is neither empty nor a run's, before anything is written into it."""
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        names -= {JOB_LOG, JOB_PROGRESS}  # they are there before a job begins its run
        if names.isdisjoint((CONFIG_FILE, OWNER_FILE)) and (names or (self.path.exists() and not self.path.is_dir())):
            raise CheckpointError(f"{self.path} exists already and holds no run: name another with --out")
