"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn


@dataclass(frozen=True)
class Status:
    """Where a run stands.

    Attributes:
        seed, stage: names; a stage of several phases is named with its phase.
        part: share of the phase's budget that is spent, 0 to 1; None where only a win rate ends it.
        steps: environment steps in the phase.
        win_rate: over the window of training games; None before the first game has ended.
        speed: environment steps a second.
        seconds_left: until the end of the whole run, at this speed and if no phase ends early; None if unknown.
    """

    seed: int
    stage: str
    part: float | None
    steps: int
    win_rate: float | None
    speed: float
    seconds_left: float | None

    @property
    def numbers(self) -> str:
        wins = "–" if self.win_rate is None else f"{self.win_rate:.1%}"
        return f"{self.steps:,} steps, wins {wins}, {self.speed:,.0f} steps/s, {duration(self.seconds_left)} left"


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
    """Shows a run's progress.

    Args:
        console: where to; standard output by default.
        plain_every: seconds between two lines where the output is no terminal.
    """

    def __init__(self, console: Console | None = None, plain_every: float = 10.0) -> None:
        self.console = console or Console(highlight=False)
        self.live = self.console.is_terminal
        self._plain_every = plain_every
        self._last_line = -float("inf")
        self._progress = Progress(
            TextColumn("seed {task.fields[seed]}  [bold]{task.description}[/bold]"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}%  {task.fields[numbers]}"),
            console=self.console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Display:
        if self.live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, status: Status) -> None:
        """Bring the line up to date."""
        if self.live:
            if self._task is None:
                self._task = self._progress.add_task(status.stage, total=1.0, seed=status.seed, numbers="")
            self._progress.update(
                self._task,
                description=status.stage,
                completed=status.part or 0.0,
                seed=status.seed,
                numbers=status.numbers,
            )
        elif time.monotonic() - self._last_line >= self._plain_every:
            self._last_line = time.monotonic()
            part = "" if status.part is None else f" {status.part:.0%}"
            self.say(f"seed {status.seed} {status.stage}{part}: {status.numbers}")

    def say(self, line: str) -> None:
        """Print a line that stays."""
        self.console.print(line, soft_wrap=True, markup=False)
