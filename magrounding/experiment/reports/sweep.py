"""`sweep.md`, `sweep.csv` and `sweep.png`: the points of a sweep, best first, and what each option makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from magrounding.experiment.markdown import code, shown
from magrounding.experiment.plots import COLOURS, Scale, beside, draw_estimate, make_figure, plain, save, scale_of
from magrounding.experiment.results import RunResults
from magrounding.experiment.statistics import Reached, Statistics, statistics_of
from magrounding.experiment.sweep.axis import Axis, Values
from magrounding.experiment.sweep.record import OPTUNA, Sweep, SweepFolder, evaluations, reached, scores
from magrounding.experiment.tables import NUMBERS, Cell, Table, page, shown_as, with_interval
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
        number, values: of the point.
        results: of its run.
        statistics: of its result on the set that chooses; None where no seed is finished, or it was given up.
        watched: its evaluations within the last stage.
        stopped: after so many of them it was given up; 0: it was not.
    """

    number: int
    values: Values
    results: RunResults
    statistics: Statistics | None
    watched: Sequence[float]
    stopped: int

    @cached_property
    def scores(self) -> list[Reached]:
        """The result of each seed."""
        return scores(self.results)

    @property
    def name(self) -> str:
        return f"point_{self.number}"

    @property
    def order(self) -> tuple[bool, bool, float]:
        """Finished points first, each kind by its results."""
        last = self.watched[-1] if self.watched else 0.0
        return not self.statistics, not self.stopped, -(self.statistics.iqm if self.statistics else last)

    @property
    def state(self) -> str:
        """State of the point's training, in words."""
        if self.stopped:
            return f"given up after {self.stopped} evaluation{'s' if self.stopped > 1 else ''}"
        settings = self.results.settings
        stage, of = settings.stages[-1], len(settings.seeds)
        ended = self.results.took(stage, settings.of_stage(stage)[-1].name, "best_steps")
        seeds = 0 if ended is None else ended.seeds
        return "finished" if seeds == of else f"{seeds} of {of} seeds finished"


def measured_points(folder: SweepFolder, sweep: Sweep) -> list[Measured]:
    """The points of a sweep that have measured something, the best first."""
    found = []
    for number, point in enumerate(sweep.points):
        if (results := folder.results(number)) is not None:
            ended = None if point.stopped else reached(results)
            watched = evaluations(results.settings, folder.run(number))
            found.append(Measured(number, point.values, results, ended, watched, point.stopped))
    return sorted(found, key=lambda each: each.order)


def write_report(folder: SweepFolder, sweep: Sweep) -> bool:
    """Write the table, its numbers and the figure; False where no point has measured anything yet."""
    points = measured_points(folder, sweep)
    if not points:
        return False
    write_atomic(folder.path / FIGURE_FILE, plot(sweep, points))
    write_atomic(folder.path / NUMBERS_FILE, numbers(sweep, points).csv())
    write_atomic(folder.path / REPORT_FILE, report(sweep, points))
    return True


def report(sweep: Sweep, points: Sequence[Measured]) -> str:
    """The sweep as Markdown."""
    config, axes = sweep.config, sweep.axes
    stage, chosen = config.stages[-1], config.evaluation.selection_set
    others = [name for name in config.evaluation_sets(stage, config.of_stage(stage)[-1]) if name != chosen]
    show = shown_as(config.measure(stage))
    what = "games won" if config.measure(stage) == "win_rate" else "score"
    where = f" after {stage}" if stage else ""
    table = Table.of(
        points,
        {
            "point": lambda point: point.name,
            **{shown(axis.path): lambda point, axis=axis: _value(axis, point.values) for axis in axes},
            f"{chosen}: interquartile mean": lambda point: with_interval(
                point.statistics and point.statistics.estimate, show
            ),
            f"{chosen}: mean": lambda point: point.statistics,
            **{f"{name}: mean": lambda point, name=name: reached(point.results, name) for name in others},
            "last evaluation": lambda point: show(point.watched[-1]) if point.watched else None,
            "state": lambda point: point.state,
        },
    )
    seeds = f"{len(config.seeds)} seed{'s' if len(config.seeds) > 1 else ''}"
    return page(
        f"# Sweep: {config.title}",
        f"{len(points)} of {sweep.count} points ({sweep.search}) have results, {seeds} each. Shown are {what}{where}, "
        f"with the 95 % interval over seeds and games. Points are ordered by the set `{chosen}`: the best of many "
        "looks better than it is, so train it with other seeds before you compare it with anything.",
        _given_up(sweep, points),
        table.markdown(),
        f"![what each option makes of the result]({FIGURE_FILE})",
        "A marker is the interquartile mean of one point with its interval, a small dot one seed; the grey line is the "
        "interquartile mean of all runs that have a value.",
        f"Begun with {code(sweep.command)}" if sweep.command else "",
    )


def _given_up(sweep: Sweep, points: Sequence[Measured]) -> str:
    """Return a sentence with the number of points that were given up, and why."""
    stopped = sum(point.stopped > 0 for point in points)
    if sweep.search != OPTUNA or not stopped:
        return ""
    return (
        f"{stopped} of them were given up, as their evaluations stayed below the median of those before: they stand "
        "below the others, by their last evaluations."
    )


def numbers(sweep: Sweep, points: Sequence[Measured]) -> Table:
    """Every point with its values and the statistics of its result."""

    def number(point: Measured, name: str) -> Cell:
        return None if point.statistics is None else point.statistics.to_dict()[name]

    return Table.of(
        points,
        {
            "point": lambda point: point.name,
            **{axis.path: lambda point, axis=axis: point.values[axis.path] for axis in sweep.axes},
            **{name: lambda point, name=name: number(point, name) for name in NUMBERS},
            "last_evaluation": lambda point: point.watched[-1] if point.watched else None,
            "state": lambda point: point.state,
        },
    )


def _value(axis: Axis, values: Values) -> str:
    word = values[axis.path]
    return word if axis.values or len(word) <= _MOST_CELLS else f"{float(word):.4g}"


def plot(sweep: Sweep, points: Sequence[Measured]) -> bytes:
    """A PNG with one panel for each option: the finished points at its values, coloured by one of the options."""
    config, axes = sweep.config, sweep.axes
    scale = scale_of(config, config.stages[-1])
    ended = sorted((point for point in points if point.statistics), key=lambda point: point.number)
    by = next((axis for axis in axes if 1 < len(axis.values) <= len(COLOURS)), None) if len(axes) > 1 else None
    figure, panels = make_figure(len(axes))
    for axis, panel in zip(axes, panels, strict=True):
        for point in ended:
            number = by.values.index(point.values[by.path]) if by is not None else 0
            label = "" if by is None else f"{by.path}={by.values[number]}"
            found, singles = statistics_of(point.scores).estimate, [each.value for each in point.scores]
            draw_estimate(panel, _place(axis, point, ended), scale, found, singles, number, label)
        if axis.values:
            _draw_values(panel, axis, ended, scale)
        elif axis.log:
            panel.set_xscale("log")
        panel.set_xlabel(plain(axis.path))
    figure.suptitle(plain(config.title))
    return save(figure, panels, [scale] * len(panels))


def _place(axis: Axis, point: Measured, points: Sequence[Measured]) -> float:
    """Place of a point on an axis: at its number, or beside the others that have the same value of a list."""
    if not axis.values:
        return float(point.values[axis.path])
    alike = sorted(each.number for each in points if each.values[axis.path] == point.values[axis.path])
    return axis.values.index(point.values[axis.path]) + beside(alike.index(point.number), len(alike))


def _draw_values(panel: Axes, axis: Axis, points: Sequence[Measured], scale: Scale) -> None:
    """The values of a list below a panel, and the interquartile mean of all runs that have each."""
    places, means = [], []
    for place, value in enumerate(axis.values):
        scores = [each for point in points if point.values[axis.path] == value for each in point.scores]
        if scores:
            places.append(place)
            means.append(scale.factor * statistics_of(scores).iqm)
    panel.plot(places, means, color="0.6", linewidth=1.2, zorder=0, label="all runs with the value")
    panel.set_xlim(-0.5, len(axis.values) - 0.5)
    panel.set_xticks(range(len(axis.values)), list(map(plain, axis.values)))
