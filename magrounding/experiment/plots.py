"""`curves.png`: win rate or score of training games over each stage, one line a seed, between floor and ceiling."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from magrounding.play.evaluate import TRUE_MANUAL
from magrounding.training.algorithm import IMITATE

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from magrounding.experiment.config import RunConfig
    from magrounding.experiment.results import RunResults

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind eyes distinguish too (Okabe and Ito)."""


MOST_BESIDE = 5
"""Panels in one row."""
_LINE = 0.3
"""Inches that a line of a legend takes at most."""
_FULL = 0.98
"""Of a figure's width, what a legend or a title may take."""
_DODGE = 3.0
"""Points that the markers of two evaluation sets are moved apart: they are evaluated at the same steps."""


_FEW_MARKERS = 12
"""Evaluations of a stage; more have smaller markers."""


class Scale(NamedTuple):
    """What a figure shows: win rates in percent, or scores as they are.

    Attributes:
        quantity: entry of `Evaluation.summary`.
        factor: by which it is multiplied.
        label: of the axis.
    """

    quantity: str
    factor: float
    label: str


WIN_RATES, SCORES = Scale("win_rate", 100.0, "games won (%)"), Scale("score", 1.0, "score")


def scale_of(settings: RunConfig, stage: str) -> Scale:
    """What figures of a run show of a stage."""
    return SCORES if settings.measure(stage) == SCORES.quantity else WIN_RATES


def plot_curves(results: RunResults) -> bytes:
    """A PNG with one panel for each stage."""
    stages, settings = results.settings.stages, results.settings
    scales = [scale_of(settings, stage) for stage in stages]
    figure, panels = make_figure(len(stages), alike=len(set(scales)) == 1)
    for stage, panel in zip(stages, panels, strict=True):
        _draw_stage(results, stage, panel)
    figure.suptitle(plain(f"{settings.env}, {settings.agents} × {settings.agent}, preset {settings.preset}"))
    return finish(figure, panels, scales)


def plain(text: str) -> str:
    """A string of a person's for a figure: shown as it is, no formula, no label that legends leave out."""
    line = "".join(each if each.isprintable() else " " for each in text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line


def make_figure(
    panels: int, width: float = 3.2, height: float = 4.2, *, alike: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows of MOST_BESIDE at most, each so many inches wide and high; `alike`: of one scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(panels, MOST_BESIDE)
    rows = -(-panels // columns)
    figure = Figure(figsize=(max(6.0, width * columns), height * rows), layout="constrained")
    FigureCanvasAgg(figure)
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
    _fit_legend(figure, handles)
    return to_png(figure)


def _fit_legend(figure: Figure, handles: Mapping[str, Artist]) -> None:
    """A legend below the panels in as many columns as fit beside each other; what it and the title take is added."""
    if not handles:
        return
    width, height = figure.get_size_inches()
    figure.set_figheight(height + _LINE * len(handles))  # room for the longest legend while it is measured
    legend = _legend(figure, handles, len(handles))
    for columns in range(len(handles) - 1, 0, -1):
        if legend.get_window_extent().width <= _FULL * figure.bbox.width:
            break
        legend.remove()
        legend = _legend(figure, handles, columns)
    box = legend.get_window_extent()
    title = max((text.get_window_extent().width for text in figure.texts), default=0.0)
    widest = max(box.width, title) / _FULL / figure.dpi
    figure.set_size_inches(max(width, widest), height + box.height / figure.dpi)


def _legend(figure: Figure, handles: Mapping[str, Artist], columns: int) -> Legend:
    """A legend below the panels, laid out so that its size is known."""
    legend = figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False
    )
    figure.draw_without_rendering()
    return legend


def to_png(figure: Figure) -> bytes:
    """The PNG of a figure."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130, metadata={"Software": None})
    return data.getvalue()


def _draw_stage(results: RunResults, stage: str, panel: Axes) -> None:
    scale, windowed = scale_of(results.settings, stage), results.settings.windowed(stage)
    for k, seed in enumerate(results.settings.seeds):
        lines = [line for line in results.select("train", seed, stage=stage) if windowed in line]
        if lines:
            start = results.start_of(seed, stage)
            steps = [line["total_steps"] - start for line in lines]
            means = [scale.factor * line[windowed] for line in lines]
            colour = COLOURS[k % len(COLOURS)]
            panel.plot(steps, means, color=colour, linewidth=1.2, label=f"training, seed {seed}")
    for k, name in enumerate(results.settings.evaluation.watched_sets):
        _draw_evaluations(results, stage, name, k, panel)
    if len(results.settings.of_stage(stage)) > 1:
        seed = results.settings.seeds[0]
        for ended in results.select("phase", seed, stage=stage, phase=IMITATE):
            where = ended["total_steps"] - results.start_of(seed, stage)
            panel.axvline(where, color="0.6", linewidth=1.0, label="imitation ends")
    others = results.baselines.get(f"{stage}/train", {})
    for who, style in (("oracle", "--"), ("random", ":")):
        if who in others:
            mean = scale.factor * others[who][scale.quantity]
            panel.axhline(mean, color="0.35", linestyle=style, linewidth=1.2, label=who)
    panel.set_title(plain(results.settings.stage_name(stage)), fontsize=11)


def _draw_evaluations(results: RunResults, stage: str, name: str, k: int, panel: Axes) -> None:
    """Evaluations on the k-th of the watched sets: a marker for the mean over seeds, a bar from least to most.

    One after a phase stands where the phase ended; hollow markers are held-out games.
    """
    from matplotlib.transforms import ScaledTranslation

    settings, scale = results.settings, scale_of(results.settings, stage)
    play, by_seed = settings.evaluation.selection_play, dict[int, dict[int, float]]()
    for seed in settings.seeds:
        start = results.start_of(seed, stage)
        for line in results.select("evaluation", seed, stage=stage, set=name, play=play, manual=TRUE_MANUAL):
            of_step = by_seed.setdefault(line["total_steps"] - start, {})
            of_step[seed] = scale.factor * line[scale.quantity]  # the last one, which is that of the report
    if not by_seed:
        return
    aside = (k - (len(settings.evaluation.watched_sets) - 1) / 2) * 2 * _DODGE / 72
    moved = panel.transData + ScaledTranslation(aside, 0, panel.figure.dpi_scale_trans)
    steps = sorted(by_seed)
    found = [list(by_seed[step].values()) for step in steps]
    means = [float(np.mean(each)) for each in found]
    ends = [[mean - min(each), max(each) - mean] for mean, each in zip(means, found, strict=True)]
    trained, mean = name == "train", ", mean over seeds" if len(settings.seeds) > 1 else ""
    panel.errorbar(
        steps,
        means,
        np.maximum(0.0, np.transpose(ends)),
        fmt="o" if trained else "D",
        color="0.15",
        markerfacecolor="0.15" if trained else "white",
        markersize=4.5 if len(steps) <= _FEW_MARKERS else 2.5,
        elinewidth=1.0,
        label=plain(f"evaluation ({play}), {name}{mean}"),
        transform=moved,
        zorder=3,
    )
    for end in (min, max):  # what is moved aside says nothing of the axes by itself
        panel.update_datalim(list(zip(steps, map(end, found), strict=True)))
    panel.autoscale_view()
