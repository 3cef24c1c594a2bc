"""Tracker: a service that draws curves of runs, such as TensorBoard or MLflow. Each one is a file of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

DEFAULT = ("tensorboard",)
"""Trackers of a run unless others are named."""


class Tracker(Protocol):
    """One seed of a run, as a service shows it; made with the folder where it may keep files, which need not exist.

    All methods are called in a thread of their own, in which they may wait. Whatever they raise ends the tracker, not
    the run.
    """

    def __init__(self, folder: Path) -> None: ...

    def start(self, project: str, name: str, config: Mapping[str, Any]) -> int | None:
        """Begin, or go on where the service knows this name: an earlier process may have been killed at any moment.

        Args:
            project: under which runs are compared.
            name: of this seed of this run and of no other, in letters, digits and "_.-".
            config: options as JSON data, with dicts within dicts.

        Returns:
            The last step that the service has of this name, -1 where it has none: later ones are sent, once a
            checkpoint holds them. None: what it had is removed, and all steps are sent anew, each as it is written.
        """
        ...

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show what was measured at an environment step; steps grow, and each comes once."""
        ...

    def close(self) -> None:
        """Send what is left; nothing is called after it."""
        ...
