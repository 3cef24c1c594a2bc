"""Put runs side by side: `magrounding compare --runs runs/a runs/b --names with without --out runs/ab`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.command import CommandLine, distinct_names
from magrounding.experiment.reports.compare import comparison, numbers, plot
from magrounding.experiment.results import read_results
from magrounding.owner import owned
from magrounding.storage import write_atomic

COMPARISON_FILE = "comparison.md"
FIGURE_FILE = "comparison.png"
NUMBERS_FILE = "comparison.csv"


@dataclass(frozen=True)
class Arguments:
    """Compare finished runs of one environment: a table for each stage, and learning curves at equal steps."""

    runs: tuple[Path, ...]
    """Run folders."""
    out: Path
    """Folder for comparison.md, comparison.csv and comparison.png."""
    names: tuple[str, ...] = ()
    """Names of the runs. (default: their folders' names)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Read the runs, write the comparison."""
    names, out = distinct_names(arguments.runs, arguments.names), arguments.out
    with owned(out, "the comparison"):
        runs = {name: read_results(folder) for name, folder in zip(names, arguments.runs, strict=True)}
        text, picture = comparison(runs, FIGURE_FILE), plot(runs)
        write_atomic(out / FIGURE_FILE, picture)
        write_atomic(out / NUMBERS_FILE, numbers(runs).csv())
        write_atomic(out / COMPARISON_FILE, text)
    print(f"comparison: {out / COMPARISON_FILE}")
