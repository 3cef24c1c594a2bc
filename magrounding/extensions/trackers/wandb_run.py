"""Weights & Biases: its own variables say where runs go (WANDB_API_KEY, WANDB_BASE_URL, WANDB_MODE=offline)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magrounding.errors import needed

_SECONDS = 30.0
_SETTINGS = {
    "silent": True,  # a run has a display of its own
    "console": "off",
    "init_timeout": _SECONDS,
    "finish_timeout": _SECONDS,
    "finish_timeout_raises": True,
    "disable_git": True,
    "disable_code": True,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}
"""Settings of W&B: it sends the project, name, options, steps and metrics alone, and waits for nothing for ever."""


class WandB:
    """A run of W&B whose id is the name.

    Offline there is no server to ask what was kept, and a killed process may not have written its last seconds: a
    resumed run is written anew, and what earlier processes wrote is removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self, project: str, name: str, config: Mapping[str, Any]) -> int | None:
        with needed("W&B", "trackers"):
            import wandb
        online = wandb.setup().settings.mode in ("online", "run", "shared")
        if online and not wandb.login(prompt=False):  # never asks a question in the middle of a run
            raise ValueError("it has no API key: use `wandb login`, or WANDB_MODE=offline")
        how = {"resume": "allow" if online else None, "reinit": "create_new", "settings": wandb.Settings(**_SETTINGS)}
        place = None if "WANDB_DIR" in os.environ else self._folder.parent  # it makes a folder "wandb" there
        self._run = wandb.init(project=project, name=name, id=name, config=dict(config), dir=place, **how)
        if online:
            return self._run.starting_step - 1
        own = Path(self._run.settings.sync_dir)
        for each in own.parent.glob(f"offline-run-*-{name}"):
            if each != own:
                shutil.rmtree(each)
        return None

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()
