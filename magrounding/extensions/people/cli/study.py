"""The table of a study: `magrounding study runs/study`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from magrounding.cli.command import CommandLine
from magrounding.experiment.tables import say
from magrounding.extensions.people.study_report import read_study, study_report
from magrounding.storage import check_place, write_atomic


@dataclass(frozen=True)
class Arguments:
    """Print the table of results of a study that was held by `magrounding serve --study`."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder of the data, --out of `magrounding serve`."""
    out: Path | None = None
    """File (.md) for the table; it is printed as well. (default: none)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Read, print, write."""
    if arguments.out is not None:
        check_place(arguments.out)
    report = study_report(read_study(arguments.folder))
    say(report)
    if arguments.out is not None:
        write_atomic(arguments.out, report)
