"""Figures: learning curves, and the parts of all: panels, axes of win rates or scores, a legend below, points."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from magrounding.experiment.plan import Stage
from magrounding.experiment.results import RunResults
from magrounding.experiment.tables import AFTER, END, TRAINING, WITHIN
from magrounding.teams.evaluate import TRUE_MANUAL
from magrounding.teams.lineup import ORACLE, RANDOM
from magrounding.training.algorithm import IMITATE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from magrounding.statistics import Interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind eyes distinguish too (Okabe and Ito)."""


MOST_BESIDE = 5
"""Panels in one row."""
_HEIGHT = 4.2
"""Inches of a panel."""
_LINE = 0.3
"""Inches that a line of a legend takes at most."""
_FULL = 0.98
"""Share of a figure's width that a legend or a title may take."""
PLACE_WIDTH = 0.8
"""Width of a place on the axis, which several series share."""


class Scale(NamedTuple):
    """The quantity of a figure: win rates in percent, or scores as they are.

    Attributes:
        quantity: entry of `Evaluation.summary`.
        factor: by which it is multiplied.
        label: of the axis.
    """

    quantity: str
    factor: float
    label: str


WIN_RATES, SCORES = Scale("win_rate", 100.0, "games won (%)"), Scale("score", 1.0, "score")


def scale_of(stage: Stage) -> Scale:
    """The quantity of figures about a stage."""
    return SCORES if stage.measure == SCORES.quantity else WIN_RATES


def plain(text: str) -> str:
    """A string of a person's for a figure: shown as it is, no formula, no label that legends leave out."""
    line = "".join(each if each.isprintable() else " " for each in text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line


def make_figure(panels: int, width: float = 3.2, *, alike: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows of MOST_BESIDE at most, each so many inches wide; `alike`: of one scale."""
    from matplotlib.figure import Figure

    columns = min(panels, MOST_BESIDE)
    rows = -(-panels // columns)
    figure = Figure(figsize=(max(6.0, width * columns), _HEIGHT * rows), layout="constrained")
    places = figure.subplots(rows, columns, sharey=alike, squeeze=False).ravel()
    for empty in places[panels:]:
        empty.remove()
    return figure, list(places[:panels])


def finish(figure: Figure, panels: Sequence[Axes], scales: Sequence[Scale]) -> bytes:
    """Axes of win rates or scores, one scale a panel, over steps, one legend for all panels, and the PNG."""
    for panel in panels:
        panel.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        panel.locator_params(axis="x", nbins=4)
        # One point would stand on an axis that begins beside it; markers stand a little to the right of their places.
        panel.set_xlim(0, 1.04 * panel.get_xlim()[1])
    for panel in panels[-MOST_BESIDE:]:
        panel.set_xlabel("environment steps")
    return save(figure, panels, scales)


def save(figure: Figure, panels: Sequence[Axes], scales: Sequence[Scale]) -> bytes:
    """Axes of win rates or scores, one scale a panel, one legend for all panels, and the PNG."""
    handles: dict[str, Artist] = {}
    for panel, scale in zip(panels, scales, strict=True):
        if scale is WIN_RATES:
            panel.set_ylim(-2, 102)
            panel.set_yticks(np.arange(0, 101, 20))
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    for k, (panel, scale) in enumerate(zip(panels, scales, strict=True)):
        if k % MOST_BESIDE == 0 or scale is not scales[k - 1]:
            panel.set_ylabel(scale.label)
    _add_legend(figure, handles)
    return to_png(figure)


def _add_legend(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """A legend below the panels in as many columns as fit beside each other; what it and the title take is added."""
    if not handles:
        return
    width, height = figure.get_size_inches()
    figure.set_figheight(height + _LINE * len(handles))  # room for the longest legend while it is measured
    lines, below = (list(handles.values()), list(handles)), {"loc": "outside lower center", "frameon": False}
    columns = len(handles)
    while True:
        legend = figure.legend(*lines, ncols=columns, **below)
        figure.draw_without_rendering()
        box = legend.get_window_extent()
        if columns == 1 or box.width <= _FULL * figure.bbox.width:
            break
        legend.remove()
        columns -= 1
    title = max((text.get_window_extent().width for text in figure.texts), default=0.0)
    widest = max(box.width, title) / _FULL / figure.dpi
    figure.set_size_inches(max(width, widest), height + box.height / figure.dpi)


def to_png(figure: Figure) -> bytes:
    """The PNG of a figure."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130, metadata={"Software": None})
    return data.getvalue()


def beside(number: int, of: int) -> float:
    """Where a series, one of several, stands beside the middle of a place on the axis."""
    return PLACE_WIDTH * ((number + 1) / (of + 1) - 0.5)


def draw_estimate(
    panel: Axes, x: float, scale: Scale, found: Interval, singles: Sequence[float], number: int, label: str
) -> None:
    """Draw an estimate and its interval, in the colour of a number; several `singles` as small points.

    What is drawn is multiplied by the scale's factor; `singles` are the results of seeds.
    """
    colour, ends = COLOURS[number % len(COLOURS)], (found.value, found.low, found.high)
    value, low, high = (scale.factor * (found.value if end is None else end) for end in ends)
    if len(singles) > 1:
        values = [scale.factor * each for each in singles]
        panel.plot([x] * len(values), values, ".", color=colour, markersize=4, alpha=0.45)
    style = {"color": colour, "markersize": 6, "capsize": 3, "linestyle": "none", "label": plain(label) or None}
    panel.errorbar(x, value, [[max(0.0, value - low)], [max(0.0, high - value)]], fmt="o", **style)


_DODGE = 3.0
"""Points that the markers of two evaluation sets are moved apart: they are evaluated at the same steps."""
_FEW_MARKERS = 12
"""Evaluations of a stage; more have smaller markers."""

Points = dict[int, dict[str, float]]
"""Steps → seed → value."""


def plot_curves(run: RunResults) -> bytes:
    """A PNG with one panel for each stage: training games, one line a seed, evaluations, and other players."""
    settings = run.settings
    figure, panels, scales = _of_stages(list(run.plan.stages.values()))
    for stage, scale, panel in zip(settings.stages, scales, panels, strict=True):
        trained = run.curve(TRAINING, stage, run.plan.stages[stage].windowed)
        for k, seed in enumerate(map(str, settings.seeds)):
            own = {step: values for step, values in trained.items() if seed in values}
            points = {step: scale.factor * values[seed] for step, values in own.items()}
            _line(panel, points, color=COLOURS[k % len(COLOURS)], linewidth=1.2, label=f"training, seed {seed}")
        for k, name in enumerate(settings.evaluation.watched_sets):
            _draw_evaluations(run, stage, scale, name, k, panel)
        if len(settings.of_stage(stage)) > 1:
            for ended in run.curve(END, stage, "best_steps", phase=IMITATE, seed=str(settings.seeds[0])):
                panel.axvline(ended, color="0.6", linewidth=1.0, label="imitation ends")
        for who, style in ((ORACLE, "--"), (RANDOM, ":")):
            if (found := run.baseline(stage, "train", who)) is not None:
                panel.axhline(scale.factor * found.mean, color="0.35", linestyle=style, linewidth=1.2, label=who)
        if least := settings.of_stage(stage)[-1].gate.win_rate:
            panel.axhline(scale.factor * least, color=COLOURS[1], linestyle="-.", label="gate")
    figure.suptitle(plain(f"{settings.env}, {settings.agents} × {settings.agent}, preset {settings.preset}"))
    return finish(figure, panels, scales)


def plot_comparison(runs: Mapping[str, RunResults], stages: Sequence[str]) -> bytes:
    """A PNG with one panel for each stage: evaluations during training, on the set that none learns from.

    A line is the mean over seeds at every step that all of them have.
    """
    from matplotlib.lines import Line2D

    known = {name: stage for run in runs.values() for name, stage in run.plan.stages.items()}
    figure, panels, scales = _of_stages([known[stage] for stage in stages])
    for stage, scale, panel in zip(stages, scales, panels, strict=True):
        for k, (name, run) in enumerate(runs.items()):
            if stage not in run.settings.stages:
                continue
            colour, watched = COLOURS[k % len(COLOURS)], run.settings.evaluation.watched_sets
            held_out = [which for which in watched if which != "train"][-1:]
            trained = run.curve(TRAINING, stage, run.plan.stages[stage].windowed)
            _line(panel, _means(trained, scale), color=colour, linestyle=":", linewidth=1.2)
            # A phase ends with an evaluation of its best weights: a point only where there is no other.
            within, after = _evaluations(run, stage, scale, held_out[-1]) if held_out else ({}, {})
            points = _merged(after, within)
            label = plain(f"{name} ({held_out[-1]})" if held_out else name)
            style: dict[str, Any] = {"marker": "D", "markersize": 4, "linewidth": 1.6, "label": label}
            _line(panel, _means(points, scale), color=colour, **style)
        panel.add_line(Line2D([], [], color="0.35", linestyle=":", linewidth=1.2, label="training games"))
    return finish(figure, panels, scales)


def _of_stages(stages: Sequence[Stage]) -> tuple[Figure, list[Axes], list[Scale]]:
    """A figure with a panel for each stage, and the scale of each."""
    scales = [scale_of(stage) for stage in stages]
    figure, panels = make_figure(len(scales), alike=len(set(scales)) == 1)
    for stage, panel in zip(stages, panels, strict=True):
        panel.set_title(plain(stage.label), fontsize=11)
    return figure, panels, scales


def _draw_evaluations(run: RunResults, stage: str, scale: Scale, name: str, k: int, panel: Axes) -> None:
    """Draw evaluations on the k-th of the watched sets: a marker for the mean over seeds, a bar from least to most.

    One after a phase stands where the phase ended; hollow markers are held-out games.
    """
    from matplotlib.transforms import ScaledTranslation

    settings, points = run.settings, _merged(*_evaluations(run, stage, scale, name))
    if not points:
        return
    steps, found = list(points), [scale.factor * np.array(list(each.values())) for each in points.values()]
    aside = (k - (len(settings.evaluation.watched_sets) - 1) / 2) * 2 * _DODGE / 72
    means = [float(each.mean()) for each in found]
    ends = [[max(0.0, mean - each.min()), max(0.0, each.max() - mean)] for mean, each in zip(means, found, strict=True)]
    trained, mean = name == "train", ", mean over seeds" if len(settings.seeds) > 1 else ""
    panel.errorbar(
        steps,
        means,
        np.transpose(ends),
        fmt="o" if trained else "D",
        color="0.15",
        markerfacecolor="0.15" if trained else "white",
        markersize=4.5 if len(steps) <= _FEW_MARKERS else 2.5,
        elinewidth=1.0,
        label=plain(f"evaluation ({settings.evaluation.selection_play}), {name}{mean}"),
        transform=panel.transData + ScaledTranslation(aside, 0, panel.figure.dpi_scale_trans),
        zorder=3,
    )
    for end in (np.min, np.max):  # what is moved aside says nothing of the axes by itself
        panel.update_datalim(list(zip(steps, map(end, found), strict=True)))
    panel.autoscale_view()


def _evaluations(run: RunResults, stage: str, scale: Scale, name: str) -> tuple[Points, Points]:
    """Evaluations within phases, and those after them, in the way of playing by which weights are chosen."""
    where = {"set": name, "play": run.settings.evaluation.selection_play, "manual": TRUE_MANUAL}
    within, after = (run.curve(when, stage, scale.quantity, **where) for when in (WITHIN, AFTER))
    return within, after


def _merged(first: Points, then: Points) -> Points:
    """Both, those of `then` where seeds have two at the same steps."""
    return {step: {**first.get(step, {}), **then.get(step, {})} for step in sorted({*first, *then})}


def _means(points: Points, scale: Scale) -> dict[int, float]:
    """The mean over seeds at every step that all of them have."""
    full = max(map(len, points.values()), default=0)
    return {step: scale.factor * sum(of.values()) / full for step, of in points.items() if len(of) == full}


def _line(panel: Axes, points: Mapping[int, float], **style: Any) -> None:
    if points:
        panel.plot(list(points), list(points.values()), **style)
