"""Print a run's commands, one for each seed, for Slurm, GNU parallel or xargs: `magrounding jobs RUN`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from magrounding.cli.command import CommandLine
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import read_config
from magrounding.experiment.jobs.seeds import seed_words
from magrounding.experiment.tables import CONTROL
from magrounding.run_folder import RunFolder
from magrounding.schema import Count

TRAIN = "magrounding train"


@dataclass(frozen=True)
class Arguments:
    """Print a command for each seed of runs that `train --prepare` began, one a line; each goes on where it stopped.

    They may run side by side, in any order, on machines that see the same folder. The commands that write the reports,
    when all have ended, are printed to the standard error.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional] = ()
    """Run folders. (default: none)"""
    threads: Count = 1
    """Cores for each command to compute with."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Print the commands."""
    if not arguments.runs:
        raise ConfigurationError("name a run's folder: magrounding jobs RUN")
    if broken := [str(each) for each in arguments.runs if CONTROL.search(str(each.absolute()))]:
        raise ConfigurationError(f"a line cannot name {broken[0]!r}, which has ends of lines or controls: rename it")
    runs = {RunFolder(folder.absolute()): read_config(folder) for folder in arguments.runs}
    for folder, settings in runs.items():
        for seed in settings.seeds:
            print(CommandLine(TRAIN, (*seed_words(folder, seed), "--threads", str(arguments.threads))))
    for folder in runs:
        print(f"at last: {CommandLine(TRAIN, ('--out', str(folder), '--resume'))}", file=sys.stderr)
