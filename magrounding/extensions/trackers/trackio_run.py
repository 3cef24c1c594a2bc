"""Trackio: a database of this machine, or what TRACKIO_SERVER_URL or TRACKIO_SPACE_ID names; see `trackio show`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from magrounding.errors import needed

_SECONDS = 30.0


class Trackio:
    """A run of Trackio; the package prints lines of its own."""

    def __init__(self, folder: Path) -> None: ...

    def start(self, project: str, name: str, config: Mapping[str, Any]) -> int:
        with needed("Trackio", "trackers"):
            import trackio
        if server := os.environ.get("TRACKIO_SERVER_URL"):  # it does not say by itself what it could not ask
            urlopen(server, timeout=_SECONDS).close()
        own: Any = {"auto_log_cpu": False, "auto_log_gpu": False, "embed": False}
        self._run = trackio.init(project, name, config=dict(config), resume="allow", **own)
        return self._run._next_step - 1  # the only place where it keeps it

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()
