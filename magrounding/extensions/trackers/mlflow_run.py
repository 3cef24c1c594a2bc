"""MLflow: MLFLOW_TRACKING_URI says where runs go, by default a file `mlflow.db` in the working directory."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magrounding.errors import needed
from magrounding.schema import flat

_STEP = "total_steps"
"""Metric that is written last at every step: the service has all of a step that has it."""
_PARAMS, _METRICS, _LONGEST = 100, 1000, 500
"""Entries of a request at most, and characters of a parameter that every version keeps."""
_CODED = re.compile(r"[^\w\-. :/]|_(?=[0-9a-f]+[^0-9a-zA-Z\-. :/])", re.ASCII)
"""Characters that the name of a metric or parameter cannot have, and what would look like the code of one."""


def accepted(name: str) -> str:
    """A name with the code of each character that MLflow refuses, so that different names stay different."""
    return _CODED.sub(lambda found: f"_{ord(found[0]):x}_", name)


class MLflow:
    """A run of the experiment that has the project's name."""

    _half_sent = True  # a killed process may have sent a part of the first step that is missing

    def __init__(self, folder: Path) -> None: ...

    def start(self, project: str, name: str, config: Mapping[str, Any]) -> int:
        with needed("MLflow", "trackers"):
            from mlflow import MlflowClient
            from mlflow.entities import Metric, Param
        self._metric: Any = Metric
        self._client = MlflowClient()
        experiment = self._client.get_experiment_by_name(project)
        where = self._client.create_experiment(project) if experiment is None else experiment.experiment_id
        found = self._client.search_runs([where], f"attributes.run_name = '{name}'")
        run = found[0] if found else self._client.create_run(where, run_name=name)
        self._id = run.info.run_id
        self._client.update_run(self._id, status="RUNNING")
        params = [Param(accepted(path), str(value)[:_LONGEST]) for path, value in flat(dict(config))]
        missing = [each for each in params if each.key not in run.data.params]  # one that is known cannot change
        for k in range(0, len(missing), _PARAMS):
            self._client.log_batch(self._id, params=missing[k : k + _PARAMS])
        return max(self._steps(_STEP), default=-1)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        values = {accepted(name): value for name, value in metrics.items()}
        if self._half_sent:
            values = {name: value for name, value in values.items() if step not in self._steps(name)}
            self._half_sent = False
        now = time.time_ns() // 1_000_000
        sent = [self._metric(name, value, now, step) for name, value in {**values, _STEP: float(step)}.items()]
        for k in range(0, len(sent), _METRICS):
            self._client.log_batch(self._id, metrics=sent[k : k + _METRICS])

    def close(self) -> None:
        self._client.set_terminated(self._id)

    def _steps(self, name: str) -> set[int]:
        """Steps at which the service has a metric."""
        return {metric.step for metric in self._client.get_metric_history(self._id, name)}
