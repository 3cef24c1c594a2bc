"""`sweep.md`, `sweep.csv` and `sweep.png`: the points of a sweep, best first, and what each option makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from magrounding.experiment.plots import COLOURS, Scale, beside, draw_estimate, make_figure, plain, save, scale_of
from magrounding.experiment.results import RunResults
from magrounding.experiment.tables import NUMBERS, Table, code, page, shown, shown_as, with_interval
from magrounding.extensions.cluster.sweep.axis import Axis, Values
from magrounding.extensions.cluster.sweep.record import Point, Sweep, SweepFolder, evaluations, reached, scores
from magrounding.statistics import Statistics, statistics_of
from magrounding.storage import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REPORT_FILE, FIGURE_FILE, NUMBERS_FILE = "sweep.md", "sweep.png", "sweep.csv"

_MOST_CELLS = 12
"""Characters of a number drawn from a range that a table shows."""


@dataclass(frozen=True)
class Measured:
    """A point that has measured something.

    Attributes:
        number: of the point.
        point: its values, and whether it was given up.
        results: of its run.
    """

    number: int
    point: Point
    results: RunResults

    @cached_property
    def statistics(self) -> Statistics | None:
        """Statistics of its result on the set that chooses; None where no seed is finished, or it was given up."""
        return None if self.point.stopped else reached(self.results)

    @cached_property
    def last(self) -> float | None:
        """The last evaluation within the last stage."""
        return next(reversed(evaluations(self.results)), None)

    @property
    def state(self) -> str:
        """State of the point's training, in words."""
        if stopped := self.point.stopped:
            return f"given up after {stopped} evaluation{'s' if stopped > 1 else ''}"
        settings = self.results.settings
        stage, of = settings.stages[-1], len(settings.seeds)
        ended = self.results.took(stage, settings.of_stage(stage)[-1].name, "best_steps")
        seeds = 0 if ended is None else ended.seeds
        return "finished" if seeds == of else f"{seeds} of {of} seeds finished"


def measured_points(folder: SweepFolder, sweep: Sweep) -> list[Measured]:
    """The points of a sweep that have measured something: finished ones first, each kind by its results."""

    def order(each: Measured) -> tuple[bool, bool, float]:
        value = each.statistics.iqm if each.statistics else each.last or 0.0
        return not each.statistics, not each.point.stopped, -value

    points = [
        Measured(number, point, results)
        for number, point in enumerate(sweep.points)
        if (results := folder.results(number)) is not None
    ]
    return sorted(points, key=order)


def write_report(folder: SweepFolder, sweep: Sweep) -> None:
    """Write the table, its numbers and the figure, where a point has measured anything yet."""
    if points := measured_points(folder, sweep):
        write_atomic(folder.path / FIGURE_FILE, plot(sweep, points))
        write_atomic(folder.path / NUMBERS_FILE, numbers(sweep, points).csv())
        write_atomic(folder.path / REPORT_FILE, report(sweep, points))


def report(sweep: Sweep, points: Sequence[Measured]) -> str:
    """The sweep as Markdown."""
    config = sweep.config
    last, chosen = config.resolve().segments[-1], config.evaluation.selection_set
    stage, measure = last.stage.name, last.stage.measure
    others = [name for name in last.reported if name != chosen]
    show = shown_as(measure)
    what = "games won" if measure == "win_rate" else "score"
    where = f" after {stage}" if stage else ""
    table = Table.of(
        points,
        {
            "point": lambda each: f"point_{each.number}",
            **{shown(axis.path): lambda each, axis=axis: _value(axis, each.point.values) for axis in sweep.axes},
            f"{chosen}: interquartile mean": lambda each: with_interval(
                each.statistics and each.statistics.estimate, show
            ),
            f"{chosen}: mean": lambda each: each.statistics,
            **{f"{name}: mean": lambda each, name=name: reached(each.results, name) for name in others},
            "last evaluation": lambda each: None if each.last is None else show(each.last),
            "state": lambda each: each.state,
        },
    )
    seeds = f"{len(config.seeds)} seed{'s' if len(config.seeds) > 1 else ''}"
    stopped = sum(each.point.stopped > 0 for each in points)
    return page(
        f"# Sweep: {config.title}",
        f"{len(points)} of {sweep.count} points ({sweep.search}) have results, {seeds} each. Shown are {what}{where}, "
        f"with the 95 % interval over seeds and games. Points are ordered by the set `{chosen}`: the best of many "
        "looks better than it is, so train it with other seeds before you compare it with anything.",
        f"{stopped} of them were given up, as their evaluations stayed below the median of those before: they stand "
        "below the others, by their last evaluations."
        if stopped
        else "",
        table.markdown(),
        f"![what each option makes of the result]({FIGURE_FILE})",
        "A marker is the interquartile mean of one point with its interval, a small dot one seed; the grey line is the "
        "interquartile mean of all runs that have a value.",
        f"Begun with {code(sweep.command)}" if sweep.command else "",
    )


def numbers(sweep: Sweep, points: Sequence[Measured]) -> Table:
    """Every point with its values and the statistics of its result."""
    return Table.of(
        points,
        {
            "point": lambda each: f"point_{each.number}",
            **{axis.path: lambda each, axis=axis: each.point.values[axis.path] for axis in sweep.axes},
            **{name: lambda each, name=name: each.statistics and each.statistics.to_dict()[name] for name in NUMBERS},
            "last_evaluation": lambda each: each.last,
            "state": lambda each: each.state,
        },
    )


def _value(axis: Axis, values: Values) -> str:
    word = values[axis.path]
    return word if axis.values or len(word) <= _MOST_CELLS else f"{float(word):.4g}"


def plot(sweep: Sweep, points: Sequence[Measured]) -> bytes:
    """A PNG with one panel for each option: the finished points at its values, coloured by one of the options."""
    config, axes = sweep.config, sweep.axes
    scale = scale_of(config.resolve().segments[-1].stage)
    ended = [
        (each.point.values, each.statistics.estimate, [score.value for score in scores(each.results)])
        for each in sorted(points, key=lambda each: each.number)
        if each.statistics
    ]
    by = next((axis for axis in axes if 1 < len(axis.values) <= len(COLOURS)), None) if len(axes) > 1 else None
    figure, panels = make_figure(len(axes))
    for axis, panel in zip(axes, panels, strict=True):
        words = [values[axis.path] for values, _, _ in ended]
        for k, (values, estimate, singles) in enumerate(ended):
            alike = words[:k].count(words[k]), words.count(words[k])
            place = axis.values.index(words[k]) + beside(*alike) if axis.values else float(words[k])
            number = by.values.index(values[by.path]) if by is not None else 0
            label = "" if by is None else f"{by.path}={by.values[number]}"
            draw_estimate(panel, place, scale, estimate, singles, number, label)
        if axis.values:
            _draw_values(panel, axis, [(values[axis.path], singles) for values, _, singles in ended], scale)
        elif axis.log:
            panel.set_xscale("log")
        panel.set_xlabel(plain(axis.path))
    figure.suptitle(plain(config.title))
    return save(figure, panels, [scale] * len(panels))


def _draw_values(panel: Axes, axis: Axis, runs: Sequence[tuple[str, Sequence[float]]], scale: Scale) -> None:
    """The values of a list below a panel, and the interquartile mean of all runs that have each."""
    of_values = [[score for word, scores in runs if word == value for score in scores] for value in axis.values]
    means = {place: scale.factor * statistics_of(found).iqm for place, found in enumerate(of_values) if found}
    panel.plot(list(means), list(means.values()), color="0.6", linewidth=1.2, zorder=0, label="all runs with the value")
    panel.set_xlim(-0.5, len(axis.values) - 0.5)
    panel.set_xticks(range(len(axis.values)), list(map(plain, axis.values)))
