"""Job: one command of this package with a folder of its own, and its outcome."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from magrounding.errors import MagroundingError
from magrounding.output import JOB_LOG, JOB_PROGRESS
from magrounding.storage import LINES, open_regular

_LAST, _TAIL = 5, 10_000
"""Lines of a job's output that are repeated when it fails, and bytes among which they are looked for."""


@dataclass(frozen=True)
class Job:
    """One command of this package, which goes on where it was stopped.

    Attributes:
        name: what people see, such as "seed 2"; each job's own.
        argv: a module and the words behind it, such as ("magrounding.cli.main", "train", …). They name how many
            threads compute, and paths that are the same everywhere.
        folder: where it writes. Its output goes into `job.log` there, which stays if it fails.
    """

    name: str
    argv: tuple[str, ...]
    folder: Path

    @property
    def log(self) -> Path:
        """File of what it prints, as long as it runs and after it failed."""
        return self.folder / JOB_LOG

    @property
    def progress(self) -> Path:
        """File of how far it is, as long as it runs (`Display`)."""
        return self.folder / JOB_PROGRESS

    def last_lines(self) -> tuple[str, ...]:
        """The end of its output; none where there is no file."""
        try:
            with open_regular(self.log, LINES) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
                return tuple(file.read().decode(errors="replace").splitlines()[-_LAST:])
        except OSError:
            return ()


@dataclass(frozen=True)
class Outcome:
    """End of a job.

    Attributes:
        code: its exit code, or the negative number of the signal that ended it.
        lines: the last ones that it printed, where it failed.
        stopped: it was asked to end by itself, while the others went on.
    """

    job: Job
    code: int
    lines: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def failed(self) -> bool:
        return self.code != 0 and not self.stopped

    def __str__(self) -> str:
        if self.code < 0:
            return f"{self.job.name} was ended by {signal.Signals(-self.code).name}"
        return f"{self.job.name} ended with exit code {self.code}"


class JobsFailed(MagroundingError):
    """Jobs that did not end well; the others have finished."""


def check_outcomes(outcomes: Iterable[Outcome]) -> None:
    """Raise JobsFailed, which names the jobs that did not end well, where there are any."""
    if failed := [outcome for outcome in outcomes if outcome.failed]:
        raise JobsFailed(
            f"{'; '.join(map(str, failed))}: what it printed last is above, and in {JOB_LOG} of its folder"
        )
