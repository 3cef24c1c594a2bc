"""A filled table as Markdown, JSON and, where the paper has curves, a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.tables.layout import Cell, Row, Table, Training
from magrounding.experiment.baselines import PLAYERS
from magrounding.experiment.comparison import about_curves, plot_comparison
from magrounding.experiment.markdown import code, table
from magrounding.experiment.progress import duration
from magrounding.experiment.report import interval, percent, published, spread, teacher
from magrounding.experiment.results import TEXT, RunResults
from magrounding.experiment.statistics import METHOD, Reached, summarise
from magrounding.play.evaluate import GREEDY, PLAYS, TRUE_MANUAL

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

    def reached(self, row: Row, cell: Cell, play: str) -> dict[int, Reached]:
        """Seed → win rate, or score as a part of 100, and of how many games it is, of the seeds that have it."""
        run = self.run(row, cell)
        if run is None:
            return {}
        where = {"stage": cell.stage, "phase": run.settings.of_stage(cell.stage)[-1].name}
        found = {}
        for seed in run.settings.seeds:
            if cell.evaluation_set is None:
                name = run.settings.windowed(cell.stage)
                lines = [Reached.of({name: line.get(name)}, name) for line in run.select("train", seed, **where)]
            else:
                how = {"set": cell.evaluation_set, "play": play, "when": "after", "manual": TRUE_MANUAL}
                lines = [self._measure(line) for line in run.select("evaluation", seed, **where, **how)]
            if lines and lines[-1] is not None:
                found[seed] = lines[-1]
        return found

    def baseline(self, column: str, who: str) -> float | None:
        """What one of PLAYERS reached in a column's games; None where it was not played, or rows differ in games."""
        places = {f"{c.stage}/{c.evaluation_set}" for row in self.table.rows if (c := row.cells.get(column))}
        summaries = [run.baselines[place].get(who) for run in self.runs.values() for place in places & {*run.baselines}]
        found = [self._measure(summary) for summary in summaries if summary]
        rates = {each.value for each in found if each is not None}
        return rates.pop() if len(rates) == 1 else None

    def _measure(self, line: Mapping[str, Any]) -> Reached | None:
        found = Reached.of(line, "score" if self.table.scores else "win_rate")
        if found is None or not self.table.scores:
            return found
        return replace(found, value=found.value / 100, std=None if found.std is None else found.std / 100)


def markdown(filled: Filled, picture: str | None) -> str:
    """The table with its caption; `picture` is the name of its figure."""
    sections = [
        f"# {filled.table.title}",
        _caption(filled),
        filled_table(filled),
        _intervals(filled),
        "\n".join(f"* {column}: {_games(filled.table, column)}" for column in filled.table.columns),
        "\n".join(
            f"* {row.label}: {NOT_RUN}: {filled.skipped[row.id]}"
            for row in filled.table.rows
            if row.id in filled.skipped
        ),
        "\n".join(f"* preset `{name}`: {about}" for name, about in _presets(filled).items()),
        "\n".join(f"* text of {label}: {text}" for label, text in filled.texts().items()),
        f"![win rates during training]({picture})\n\n{about_curves(filled.runs.values())}" if picture else "",
        f"Command: {code(filled.command)}",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _caption(filled: Filled) -> str:
    shown, team = filled.table, filled.table.agents
    what = "Scores, in percent of 100," if shown.scores else "Win rates"
    others = "" if shown.scores else " that learnt by reinforcement alone"
    games = ", ".join(
        f"{count:,}" for count in sorted({r.settings.evaluation.report_games for r in filled.runs.values()})
    )
    budget = "" if filled.budget == 1 else f", {filled.budget:g} times its budget"
    how = "the most likely action" if filled.play == GREEDY else "an action drawn"
    spread_note = "mean ± standard deviation over them" if len(filled.seeds) > 1 else "nothing is known of the spread"
    teachers = dict.fromkeys(teacher(run) for run in filled.runs.values() if run.settings.imitates)
    sentences = (
        f"`{shown.env}`, {team} agent{'s' if team > 1 else ''}, preset `{filled.preset}`{budget}; "
        f"seed{'s' if len(filled.seeds) > 1 else ''} {', '.join(map(str, filled.seeds))}: {spread_note}.",
        f"{what} of {games or 'no'} games, {filled.play} play ({how}); in brackets the paper's, of its own "
        f"networks{others}, – where it has none or its text is not available to us.",
        f"Imitation had {' and '.join(teachers)} for a teacher. †: number of seeds in which reinforcement "
        "brought no gain, so that the weights of imitation were kept."
        if teachers
        else "No row had a teacher.",
        "Steps and training time are of one run of one seed, all its stages.",
        shown.note,
    )
    return " ".join(filter(None, sentences))


def filled_table(filled: Filled) -> str:
    """Row × column, with what each row learnt by and what it cost; those who learnt nothing below."""
    columns, lines = filled.table.columns, []
    for row in filled.table.rows:
        cells = [_cell(filled, row, row.cells[column]) if column in row.cells else "" for column in columns]
        lines.append((row.label, *_facts(filled, row), *cells))
    for who in PLAYERS:
        rates = [filled.baseline(column, who) for column in columns]
        if any(rate is not None for rate in rates):
            lines.append((who, *[""] * 4, *("" if rate is None else percent(rate) for rate in rates)))
    return table(("", "learnt by", "seeds", "environment steps", "training", *columns), lines)


def _cell(filled: Filled, row: Row, cell: Cell) -> str:
    rates, paper = filled.reached(row, cell, filled.play), "–" if cell.paper is None else published(cell.paper)
    run = filled.run(row, cell)
    if not rates or run is None:
        return f"{NOT_RUN} ({paper})"
    ends = [run.select("phase", seed, stage=cell.stage)[-1] for seed in rates if cell.evaluation_set is not None]
    kept = sum(line["best_steps"] == 0 for line in ends)
    return f"{spread(summarise(list(rates.values())))}{f' †{kept}' if kept else ''} ({paper})"


def _intervals(filled: Filled) -> str:
    """Row × column: interquartile mean, its interval, and of how many games it is."""
    rows = []
    for row in filled.table.rows:
        found = [
            filled.reached(row, cell, filled.play) if cell else {} for cell in map(row.cells.get, filled.table.columns)
        ]
        cells = [interval(summarise(list(each.values()))) if each else "" for each in found]
        if any(cells):
            rows.append((row.label, *cells))
    return f"{METHOD}\n\n{table(('IQM, 95 % interval', *filled.table.columns), rows)}" if rows else ""


def _facts(filled: Filled, row: Row) -> list[str]:
    """What a row learnt by, how many seeds there are, and the least and most that one of its runs cost."""
    found = [(run, cell.stage) for cell in row.cells.values() if (run := filled.run(row, cell)) is not None]
    if not found:
        return ["–"] * 4
    settings = [(run.settings, stage) for run, stage in found]
    learnt = dict.fromkeys(each.learnt_by(stage, each.of_stage(stage)[-1].name) for each, stage in settings)
    runs = filled.of_row(row)
    ends = [run.select("phase", seed)[-1] for run in runs for seed in run.settings.seeds]
    return [
        "; ".join(learnt),
        _range([str(count) for count in sorted(len(run.settings.seeds) for run in runs)]),
        _range([f"{steps:,}" for steps in sorted(line["total_steps"] for line in ends)]),
        _range([duration(seconds) for seconds in sorted(line["training_seconds"] for line in ends)]),
    ]


def _range(values: Sequence[str]) -> str:
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def _games(of: Table, column: str) -> str:
    """Of which games a column is."""
    kinds = dict.fromkeys(
        f"the last training games of `{cell.stage or of.env}`"
        if cell.evaluation_set is None
        else f"`{cell.evaluation_set}` of `{cell.stage or of.env}`"
        for row in of.rows
        if (cell := row.cells.get(column))
    )
    return " or ".join(kinds)


def _presets(filled: Filled) -> dict[str, str]:
    return {run.settings.preset: run.settings.about for run in filled.runs.values()}


def to_json(filled: Filled, versions: Mapping[str, str]) -> dict[str, Any]:
    """Everything that the table is made of, both ways of playing included."""

    def of_cell(row: Row, cell: Cell) -> dict[str, Any]:
        found = {play: filled.reached(row, cell, play) for play in PLAYS}
        return {
            "stage": cell.stage,
            "set": cell.evaluation_set,
            "paper": cell.paper and cell.paper._asdict(),
            "play": {
                play: {
                    "seeds": {seed: each.value for seed, each in reached.items()},
                    "statistics": summarise(list(reached.values())).to_dict(),
                }
                for play, reached in found.items()
                if reached
            },
        }

    return {
        "table": filled.table.id,
        "title": filled.table.title,
        "env": filled.table.env,
        "agents": filled.table.agents,
        "preset": filled.preset,
        "budget": filled.budget,
        "seeds": list(filled.seeds),
        "command": filled.command,
        "versions": dict(versions),
        "rows": {
            row.id: {
                "label": row.label,
                "text": filled.texts().get(row.label),
                "skipped": filled.skipped.get(row.id),
                "runs": {str(run.folder.parent.name): run.settings.as_dict() for run in filled.of_row(row)},
                "cells": {column: of_cell(row, cell) for column, cell in row.cells.items()},
            }
            for row in filled.table.rows
        },
    }


def figure(filled: Filled) -> bytes | None:
    """Learning curves of the rows that were run; None where the table has none, or there are fewer than two rows."""
    runs = {row.label: run for row in filled.table.rows for run in filled.of_row(row)}
    return plot_comparison(runs) if filled.table.curves and len(runs) > 1 else None
