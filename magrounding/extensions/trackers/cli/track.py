"""Send what a run measured to trackers: `magrounding track runs/demo --tracker wandb`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from magrounding.cli.command import CommandLine
from magrounding.cli.options import named_trackers
from magrounding.extensions.trackers.tracking import track, tracking_of
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder


@dataclass(frozen=True)
class Arguments:
    """Send a finished or stopped run's metrics to trackers: all steps that they do not have yet."""

    run: Annotated[Path, tyro.conf.Positional]
    """Run folder."""
    tracker: str | None = None
    """Services that show curves, separated by commas: tensorboard, wandb, mlflow, trackio (docs/trackers.md). (default:
    those that the run began with, or tensorboard)"""
    project: str | None = None
    """Project under which they show the run. (default: the run's, or magrounding)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Send, and say where to."""
    run = RunFolder(arguments.run)
    tracking = tracking_of(run.config(), named_trackers(arguments.tracker), arguments.project)
    with RunOwner(run):
        track(run, tracking)
    print(f"{run} is shown by {', '.join(tracking.trackers)} in project {tracking.project}")
