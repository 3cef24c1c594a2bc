"""Tables of what was measured: tidy rows, their statistics over seeds, and a table as Markdown, JSON or CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
import rich.table
from rich.box import SIMPLE
from rich.console import Console
from rich.text import Text

from magrounding.envs.published import PublishedResult
from magrounding.statistics import SHARES_OF_GAMES, Interval, Reached, Statistics, statistics_of

TRAINING, WITHIN, AFTER, END = "training", "within", "after", "end"
"""Moments of a measurement: on training games, within a phase, after it; END is what the whole phase took."""
TEAM = "team"
"""The player of rows of trained agents."""
HOW_TO_READ = "How to read this report: docs/reading_reports.md of magrounding."
LEAST_SEEDS = 5
"""Seeds from which on an interquartile mean is printed: of fewer it is the mean, or nearly."""

NUMBERS = ("seeds", "mean", "std", "iqm", "low", "high", "games")
"""Columns of statistics in full, entries of `Statistics.to_dict`."""

_KINDS = {"train": TRAINING, "phase": END}
_PERCENT = (
    *SHARES_OF_GAMES,
    "fact_accuracy",
    "needed_told",
    "subgoal_conflicts",
    "mask_",
    "modelling_accuracy",
    "illegal_share",
)


class Row(NamedTuple):
    """One number that was measured.

    Attributes:
        run, seed, stage, phase: of what; "" where it has none.
        steps, total_steps: environment steps of the phase, and of the seed, at which.
        when: TRAINING, WITHIN, AFTER or END.
        set, play, manual: evaluation set, way of playing and what was read.
        player: TEAM, or one of `PLAYERS`.
        metric, value: its name, as in `Evaluation.summary` and `metrics.jsonl`, and the number.
        games: of which it is the mean; 0: not known.
        std: deviation from game to game, NaN where it is not known.
    """

    run: str = ""
    seed: str = ""
    stage: str = ""
    phase: str = ""
    steps: int = 0
    total_steps: int = 0
    when: str = AFTER
    set: str = ""
    play: str = ""
    manual: str = ""
    player: str = TEAM
    metric: str = ""
    value: float = math.nan
    games: int = 0
    std: float = math.nan


_FIELDS = frozenset(Row._fields)


def tidy(lines: Iterable[Mapping[str, Any]], **given: Any) -> Iterator[Row]:
    """Rows of lines that have several numbers each, those of `metrics.jsonl` or summaries of evaluations.

    Args:
        lines: entries that `Row` has say what was measured, all other numbers are metrics.
        given: fields of all rows, where their line does not say otherwise.
    """
    for line in lines:
        kind = line.get("kind")
        if kind in ("fault", "unplayed", "gate"):
            continue
        known = {**given, **{name: value for name, value in line.items() if name in _FIELDS}}
        row = Row(**{**known, "when": line.get("when") or _KINDS.get(str(kind), AFTER)})
        where, games = (row.run, str(row.seed), *row[2:-4]), int(row.games or 0)
        numbers = {**line, **{f"spent/{name}": seconds for name, seconds in line.get("spent", {}).items()}}
        for metric, value in numbers.items():
            of_phase = row.when == END and metric in ("steps", "total_steps")
            if (of_phase or metric not in _FIELDS) and _is_number(value):
                std = line.get("score_std") if metric == "score" else None
                own = 0 if metric.startswith("window_") else games  # a window is of other games than the line is
                yield Row(*where, metric, float(value), own, math.nan if std is None else std)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def data_frame(rows: Sequence[Row]) -> Any:
    """Rows as a pandas.DataFrame, or, where pandas is not installed, as a dictionary of NumPy arrays."""
    arrays = {name: np.array([row[k] for row in rows]) for k, name in enumerate(Row._fields)}
    try:
        import pandas
    except ImportError:
        return arrays
    return pandas.DataFrame(arrays)


class Summary:
    """Statistics of groups of rows, over seeds and whatever else `by` does not name; each computed when asked for.

    Args:
        rows: of any groups.
        by: fields of `Row` that rows of a group share, in the order of a key.
    """

    def __init__(self, rows: Iterable[Row], by: Sequence[str]) -> None:
        self._groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            self._groups.setdefault(tuple(getattr(row, name) for name in by), []).append(row)
        self._by, self._of = tuple(by), cache(self._compute)

    def __call__(self, *key: Any) -> Statistics | None:
        """Statistics of a group; None where it has no row."""
        return self._of(key) if key in self._groups else None

    def rows(self, *key: Any) -> list[Row]:
        """The rows of a group."""
        return self._groups.get(key, [])

    def table(self) -> Table:
        """A row for each group: its key, and its statistics in full."""
        rows = ((*key, *map(self._of(key).to_dict().get, NUMBERS)) for key in self._groups)
        return Table((*self._by, *NUMBERS), tuple(rows))

    def _compute(self, key: tuple[Any, ...]) -> Statistics:
        return statistics_of(list(map(reached, self._groups[key])), self._groups[key][0].metric)


def reached(row: Row) -> Reached:
    """A row as a seed's score."""
    std = None if math.isnan(row.std) else row.std
    return Reached(row.value, row.games, std, row.metric.startswith(SHARES_OF_GAMES))


Cell = str | int | float | Statistics | PublishedResult | None
Key = TypeVar("Key")


@dataclass(frozen=True)
class Table:
    """Rows of cells below heads.

    Attributes:
        heads: of the columns.
        rows: a cell for each head; None: nothing is known.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, keys: Iterable[Key], columns: Mapping[str, Callable[[Key], Cell]]) -> Table:
        """A row for each key; a column in which no row has anything is left out."""
        rows = [[cell(key) for cell in columns.values()] for key in keys]
        kept = [k for k in range(len(columns)) if any(row[k] is not None for row in rows)]
        heads = tuple(columns)
        return cls(tuple(heads[k] for k in kept), tuple(tuple(row[k] for k in kept) for row in rows))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def markdown(self) -> str:
        """As Markdown; "" without a row."""
        return table(self.heads, [[text_of(cell) for cell in row] for row in self.rows]) if self.rows else ""

    def csv(self) -> str:
        """As CSV, with numbers and texts as they are."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.heads)
        writer.writerows(self.rows)
        return out.getvalue()


def interval(of: Statistics | None) -> str | None:
    """The cell of an interval; None where nothing is known of one."""
    if of is None or of.low is None or of.high is None:
        return None
    show = shown_as(of.metric)
    value = f"IQM {show(of.iqm)} " if of.seeds >= LEAST_SEEDS else ""
    games = f" of {f'{of.seeds} × ' * (of.seeds > 1)}{of.games:,} game{'s' * (of.games != 1)}" if of.games else ""
    return f"{value}[{show(of.low)}, {show(of.high)}]{games}"


def gap_closed(own: Statistics | None, silent: Statistics | None, whole: Statistics | None) -> str | None:
    """The cell of how much a team gains by telling, of what those gain who read all; None where nobody gains."""
    if own and silent and whole and whole.mean > silent.mean:
        return percent((own.mean - silent.mean) / (whole.mean - silent.mean))
    return None


def text_of(cell: Cell) -> str:
    """A cell as reports print it."""
    match cell:
        case None:
            return "–"
        case Statistics():
            mean = shown_as(cell.metric)(cell.mean)
            return mean if cell.seeds == 1 else f"{mean} ± {shown_as(cell.metric)(cell.std)}"
        case PublishedResult():
            return percent(cell.mean) if cell.std is None else f"{percent(cell.mean)} ± {percent(cell.std)}"
        case float():
            return f"{cell:.2f}"
        case int():
            return f"{cell:,}"
    return str(cell)


def with_interval(estimate: Interval | None, show: Callable[[float], str]) -> str | None:
    """The cell of an estimate and its interval; no interval where one game says nothing of others."""
    if estimate is None:
        return None
    if estimate.low is None or estimate.high is None:
        return show(estimate.value)
    return f"{show(estimate.value)} [{show(estimate.low)}, {show(estimate.high)}]"


def percent(share: float) -> str:
    """A share as reports print it."""
    return f"{100 * share:.1f} %"


def shown_as(metric: str) -> Callable[[float], str]:
    """The format of a metric: a share in percent, anything else with two decimals."""
    return percent if metric.startswith(_PERCENT) or metric == "" else "{:.2f}".format


def page(*sections: str) -> str:
    """Sections of Markdown as a page; empty ones are left out."""
    return "\n\n".join(filter(None, sections)) + "\n"


_SPECIAL = re.compile(
    r"[`*\[~]"  # code, emphasis, links, what is struck out
    r"|\\(?=[!-/:-@\[-`{-~])"  # a backslash before what it would take away
    r"|(?<![^\W_])_(?=\S)"  # the beginning of emphasis: within a word none begins
    r"|(?<!\w)\$(?=\S)"  # likewise of a formula
)


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Ends of lines, and what terminals obey instead of showing it."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar or a new line within a cell ends no cell, and one without content has a dash."""
    body = [list(map(_cell, heads)), ["---"] * len(heads), *([_cell(each) or "–" for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def say(text: str) -> None:
    """Print Markdown; a person at a terminal sees its tables aligned and wrapped at words."""
    console = Console()
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("| ")):
        if is_table and console.is_terminal:
            # Rich's own Markdown cuts off what is too wide for a column.
            heads, _, *rows = (
                [Text(re.sub(r"\\(\W)", r"\1", cell)) for cell in row[2:-2].split(" | ")] for row in lines
            )
            grid = rich.table.Table(
                *(rich.table.Column(head, overflow="fold") for head in heads), box=SIMPLE, padding=0
            )
            for row in rows:
                grid.add_row(*row)
            console.print(grid)
        else:
            print(*lines, sep="\n")


def shown(text: str) -> str:
    """A string of a person's, such as a name, as Markdown that shows it as it is, in one line."""
    line = re.sub(r"&(?=#?\w+;)", "&amp;", _in_one_line(text)).replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\g<0>", line)


def code(text: str) -> str:
    """A string as it is, in one line, set as code."""
    line = _in_one_line(text)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _in_one_line(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
    return " ".join(CONTROL.sub(" ", text).split())


def _cell(text: str) -> str:
    return CONTROL.sub(" ", text).replace("|", "\\|")
