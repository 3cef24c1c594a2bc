"""Progress of training and evaluation: bars on a terminal, plain lines elsewhere, nothing where that is asked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from magrounding.signals import JOB
from magrounding.storage import json_text, write_atomic

_BAR, _WIDE = 24, 140
"""Columns of a bar, and of a terminal that has room for one."""
_PLAIN_SECONDS = 10.0
"""Seconds between two lines about training where lines and bars are not on the same terminal."""
_REPORT_SECONDS = 2.0
"""Seconds between two reports of a job: several may write to one disk over a network."""


def duration(seconds: float | None) -> str:
    """A span as people write it: 1 h 02 min, 3 min 20 s, 12 s; "unknown time" for None."""
    if seconds is None:
        return "unknown time"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class Display:
    """Display of progress. Lines go to the standard output, bars to the standard error if that is a terminal.

    A process that is one of several jobs reports to the one that shows them all (`signals.JOB`).

    Args:
        console: where lines go; also the bars, where a console is given.
        quiet: show neither lines nor bars.
    """

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console or Console(highlight=False, quiet=quiet)
        bars = console or Console(stderr=True, highlight=False)
        self.live = bars.is_terminal and not quiet
        self._lines: dict[str, float] = {}  # row → when its last line was printed
        report = os.environ.get(JOB)
        self._report, self._last_report = Path(report) if report else None, -_REPORT_SECONDS
        text = partial(TextColumn, markup=False, table_column=Column(no_wrap=True))
        self._progress = Progress(
            text("{task.description}"),
            *[BarColumn(bar_width=_BAR)] * (bars.width >= _WIDE),
            text("{task.percentage:>3.0f}%  {task.fields[numbers]}"),
            console=bars,
            transient=True,
            redirect_stdout=False,  # what is piped elsewhere stays there
            disable=not self.live,
        )
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, title: str, part: float | None, numbers: Sequence[str], row: str = "") -> None:
        """Bring a line about training up to date.

        Args:
            title: of what is trained.
            part: share of its budget that is spent, 0 to 1; None: not known.
            numbers: the most important first; the last ones are left out where a terminal is narrow.
            row: which line, where there are several.
        """
        self._report_as_job(title, part, numbers)
        if self.live:
            if row not in self._rows:
                self._rows[row] = self._progress.add_task("", total=1.0, numbers="")
            fitting = self._fitting(numbers, len(title))
            self._progress.update(self._rows[row], description=title, completed=part or 0.0, numbers=fitting)
        last = self._lines.get(row, -float("inf"))
        if not (self.live and self.console.is_terminal) and time.monotonic() - last >= _PLAIN_SECONDS:
            self._lines[row] = time.monotonic()
            spent = "" if part is None else f" {part:.0%}"
            self.say(f"{title}{spent}: {', '.join(numbers)}")

    def hide(self, row: str) -> None:
        """Remove a line, where it is shown."""
        if row in self._rows:
            self._progress.remove_task(self._rows.pop(row))

    @contextmanager
    def games(self, what: str, total: int) -> Iterator[Callable[[int], object]]:
        """Show a bar for so many games as long as they are played; the callback advances it."""
        task = self._progress.add_task(what, total=total, numbers="")

        def advance(finished: int) -> None:
            numbers = f"{finished:,} of {total:,} games"
            self._report_as_job(what, finished / total, [numbers])
            self._progress.update(task, completed=finished, numbers=numbers)

        advance(0)
        try:
            yield advance
        finally:
            self._progress.remove_task(task)

    def _report_as_job(self, title: str, part: float | None, numbers: Sequence[str]) -> None:
        """Say how far this process is, if it is a job; a disk that refuses it is no reason to stop."""
        if self._report is None or time.monotonic() - self._last_report < _REPORT_SECONDS:
            return
        self._last_report = time.monotonic()
        with suppress(OSError):
            write_atomic(self._report, json_text({"title": title, "part": part, "numbers": list(numbers)}))

    def _fitting(self, numbers: Sequence[str], described: int) -> str:
        """Return as many numbers as fit the terminal's line behind a description of so many letters; one at least."""
        width = self._progress.console.width
        room = width - described - (_BAR + 1 if width >= _WIDE else 0) - len(" 100%  ")
        while len(numbers) > 1 and len(", ".join(numbers)) > room:
            numbers = numbers[:-1]
        return ", ".join(numbers)

    def say(self, line: str) -> None:
        """Print a line that stays."""
        # On a terminal that shows both, only the bars' own console knows where they have to be redrawn.
        console = self._progress.console if self.live and self.console.is_terminal else self.console
        console.print(line, soft_wrap=True, markup=False)
