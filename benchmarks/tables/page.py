"""A filled table as Markdown, rows and, where the paper has curves, a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.tables.layout import Cell, Row, Table, Training
from magrounding.experiment import tables
from magrounding.experiment.evaluate import PLAYERS
from magrounding.experiment.plots import plot_comparison
from magrounding.experiment.reports.compare import about_curves, shared_stages
from magrounding.experiment.results import TEXT, RunResults
from magrounding.experiment.rows import conditions, learns
from magrounding.experiment.tables import AFTER, HOW_TO_READ, TRAINING, code, page, percent, reached, shown, text_of
from magrounding.progress import duration
from magrounding.statistics import Reached, statistics_of
from magrounding.teams.evaluate import PLAYS, TRUE_MANUAL

NOT_RUN = "not run"


@dataclass(frozen=True)
class Filled:
    """A table and what was measured for it.

    Attributes:
        table: the table.
        runs: (preset, training) → what is finished, seeds together; rows that differ in their preset alone are others.
        skipped: id of a row → why it cannot be trained here.
        seeds: those asked for.
        preset, budget: those asked for.
        play: greedy or sampled.
        command: what filled it.
    """

    table: Table
    runs: Mapping[tuple[str, Training], RunResults]
    skipped: Mapping[str, str]
    seeds: Sequence[int]
    preset: str
    budget: float
    play: str
    command: str

    def of_row(self, row: Row) -> list[RunResults]:
        """The finished runs behind a row, each once."""
        found = (self.run(row, cell) for cell in row.cells.values())
        return list({id(run): run for run in found if run is not None}.values())

    def run(self, row: Row, cell: Cell) -> RunResults | None:
        """The finished runs behind a cell."""
        return self.runs.get((row.preset(self.preset), cell.training))

    def texts(self) -> dict[str, str]:
        """Label of a row → whose sentences its runs read, where they say."""
        stated = {
            row.label: dict.fromkeys(run.config.get(TEXT, "") for run in self.of_row(row)) for row in self.table.rows
        }
        return {label: "; ".join(filter(None, found)) for label, found in stated.items() if any(found)}

    @property
    def metric(self) -> str:
        """The metric of the table."""
        return "score" if self.table.scores else "win_rate"

    def reached(self, row: Row, cell: Cell, play: str) -> dict[int, Reached]:
        """Seed → win rate, or score as a part of 100, and of how many games it is, of the seeds that have it."""
        run = self.run(row, cell)
        if run is None:
            return {}
        where = {"stage": cell.stage, "phase": run.settings.of_stage(cell.stage)[-1].name}
        if cell.evaluation_set is None:
            where |= {"when": TRAINING, "metric": run.plan.stages[cell.stage].windowed}
        else:
            where |= {"when": AFTER, "metric": self.metric, "set": cell.evaluation_set, "play": play}
            where |= {"manual": TRUE_MANUAL, "player": tables.TEAM}
        found = (each for each in run.measured if all(getattr(each, name) == where[name] for name in where))
        return {int(each.seed): self._as_share(reached(each)) for each in found}  # of training, the last

    def baseline(self, column: str, who: str) -> float | None:
        """The result of one of PLAYERS in a column's games; None where it was not played, or rows differ in games."""
        places = {f"{c.stage}/{c.evaluation_set}" for row in self.table.rows if (c := row.cells.get(column))}
        summaries = [run.baselines[place].get(who) for run in self.runs.values() for place in places & {*run.baselines}]
        rates = {self._as_share(Reached(each[self.metric])).value for each in summaries if each}
        return rates.pop() if len(rates) == 1 else None

    def _as_share(self, found: Reached) -> Reached:
        if not self.table.scores:
            return found
        return replace(found, value=found.value / 100, std=None if found.std is None else found.std / 100)


def markdown(filled: Filled, picture: str | None) -> str:
    """The table with its caption; `picture` is the name of its figure."""
    rows = filled.table.rows
    notes = {
        **{column: _games(filled.table, column) for column in filled.table.columns},
        **{row.label: f"{NOT_RUN}: {filled.skipped[row.id]}" for row in rows if row.id in filled.skipped},
        **{f"preset `{run.settings.preset}`": run.settings.about for run in filled.runs.values()},
        **{f"teacher of `{run.settings.preset}`": teacher(run) for run in filled.runs.values()},
        **{f"text of {label}": text for label, text in filled.texts().items()},
    }
    return page(
        f"# {filled.table.title}",
        _caption(filled),
        HOW_TO_READ,
        filled_table(filled).markdown(),
        interval_table(filled).markdown(),
        "\n".join(f"* {name}: {note}" for name, note in notes.items()),
        f"![learning curves]({picture})\n\n{about_curves(filled.runs.values())}" if picture else "",
        f"Command: {code(filled.command)}",
    )


def _caption(filled: Filled) -> str:
    table, seeds = filled.table, filled.seeds
    counts = {run.settings.evaluation.report_games for run in filled.runs.values()}
    games = ", ".join(f"{count:,}" for count in sorted(counts))
    budget = "" if filled.budget == 1 else f", {filled.budget:g} times its budget"
    what = "Scores, in percent of 100," if table.scores else "Win rates"
    return (
        f"`{table.env}`, {table.agents} agent{'s' if table.agents > 1 else ''}, preset `{filled.preset}`{budget}; "
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}. {what} of {games or 'no'} games, "
        f"{filled.play} play; in brackets the paper's. {table.note}"
    ).rstrip()


def teacher(run: RunResults) -> str:
    """The player that the phases of imitation of a run learnt from."""
    if not run.settings.imitates:
        return "none: reinforcement alone"
    if run.settings.demonstrations:
        players = run.config.get("demonstrators", {}).items()
        return "demonstrations of " + ", ".join(f"{shown(who)} ({code(str(path))})" for path, who in players)
    usual = "the scripted oracle" if run.plan.entry.oracle else "the environment's scripted expert"
    oracles = dict.fromkeys(teaching.oracle for _, teaching in run.plan.taught())
    return " and ".join(f"the oracle `{name}`" if name else usual for name in oracles)


def filled_table(filled: Filled) -> tables.Table:
    """Row × column, with what each row learnt by and what it cost; the other players below."""
    facts = {row.label: _facts(filled, row) for row in filled.table.rows}
    others = [who for who in PLAYERS if any(filled.baseline(column, who) for column in filled.table.columns)]

    def cell(column: str) -> Callable[[Row | str], tables.Cell]:
        def of(row: Row | str) -> tables.Cell:
            if isinstance(row, Row):
                return _cell(filled, row, row.cells[column]) if column in row.cells else ""
            rate = filled.baseline(column, row)
            return "" if rate is None else percent(rate)

        return of

    return tables.Table.of(
        [*filled.table.rows, *others],
        {
            "": lambda row: row.label if isinstance(row, Row) else row,
            **{
                head: lambda row, head=head: facts[row.label].get(head, "–") if isinstance(row, Row) else ""
                for head in ("learnt by", "seeds", "environment steps", "training")
            },
            **{column: cell(column) for column in filled.table.columns},
        },
    )


def interval_table(filled: Filled) -> tables.Table:
    """Row × column: the interval of each number, and of how many games it is."""

    def cell(row: Row, column: str) -> tables.Cell:
        found = filled.reached(row, row.cells[column], filled.play) if column in row.cells else {}
        return tables.interval(statistics_of(list(found.values()))) if found else None

    columns = filled.table.columns
    rows = [row for row in filled.table.rows if any(cell(row, column) for column in columns)]
    of_columns = {column: lambda row, column=column: cell(row, column) for column in columns}
    return tables.Table.of(rows, {"95 % interval": lambda row: row.label, **of_columns})


def _cell(filled: Filled, row: Row, cell: Cell) -> str:
    found, run = filled.reached(row, cell, filled.play), filled.run(row, cell)
    if not found or run is None:
        return f"{NOT_RUN} ({text_of(cell.paper)})"
    ends = [run.select("phase", seed, stage=cell.stage)[-1] for seed in found if cell.evaluation_set is not None]
    kept = sum(line["best_steps"] == 0 for line in ends)
    mean = text_of(statistics_of(list(found.values())))  # a score is a share here, too
    return f"{mean}{f' †{kept}' if kept else ''} ({text_of(cell.paper)})"


def _facts(filled: Filled, row: Row) -> dict[str, str]:
    """The ways in which a row learnt, its seeds, and the least and most that one of its runs cost."""
    found = [(run, cell.stage) for cell in row.cells.values() if (run := filled.run(row, cell)) is not None]
    if not found:
        return {}
    learnt = dict.fromkeys(run.plan.of_stage(stage)[-1].learnt_by for run, stage in found)
    runs = filled.of_row(row)
    ends = [run.select("phase", seed)[-1] for run in runs for seed in run.settings.seeds]

    def span(values: list[Any], show: Callable[[Any], str]) -> str:
        return " to ".join(dict.fromkeys((show(min(values)), show(max(values)))))

    return {
        "learnt by": "; ".join(learnt),
        "seeds": span([len(run.settings.seeds) for run in runs], str),
        "environment steps": span([line["total_steps"] for line in ends], "{:,}".format),
        "training": span([line["training_seconds"] for line in ends], duration),
    }


def _games(of: Table, column: str) -> str:
    """The games of a column."""
    kinds = dict.fromkeys(
        f"the last training games of `{cell.stage or of.env}`"
        if cell.evaluation_set is None
        else f"`{cell.evaluation_set}` of `{cell.stage or of.env}`"
        for row in of.rows
        if (cell := row.cells.get(column))
    )
    return " or ".join(kinds)


def rows(filled: Filled) -> Iterator[dict[str, Any]]:
    """Every number of the table, in both ways of playing, with the paper's, and what it is a number of."""
    for row in filled.table.rows:
        for column, cell in row.cells.items():
            if (run := filled.run(row, cell)) is None:
                continue
            place = {"row": row.id, "label": row.label, "column": column, "stage": cell.stage}
            place["set"] = cell.evaluation_set or TRAINING
            made = conditions(run, run.plan.of_stage(cell.stage)[-1]) | learns(run.settings)
            paper = dict(zip(("published", "published std"), cell.paper or (), strict=False))
            for play in PLAYS:
                if found := filled.reached(row, cell, play):
                    of = statistics_of(list(found.values())).to_dict()
                    of |= {"value": of.pop("mean"), "values": [each.value for each in found.values()]}
                    yield {**place, "play": play, "metric": filled.metric, **of, **made, **paper}


def figure(filled: Filled) -> bytes | None:
    """Learning curves of the rows that were run; None where the table has none, or there are fewer than two rows."""
    runs = {row.label: run for row in filled.table.rows for run in filled.of_row(row)}
    return plot_comparison(runs, shared_stages(runs)) if filled.table.curves and len(runs) > 1 else None
