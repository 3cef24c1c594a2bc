"""`curves.png`: win rate or score of training games over each stage, one line a seed, between floor and ceiling."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from magrounding.experiment.presets import IMITATE
from magrounding.play.evaluate import TRUE_MANUAL

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from magrounding.experiment.results import RunResults
    from magrounding.experiment.settings import RunSettings

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours that colour-blind eyes distinguish too (Okabe and Ito)."""


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


def scale_of(settings: RunSettings) -> Scale:
    """What figures of a run show."""
    return SCORES if settings.measure == SCORES.quantity else WIN_RATES


def plot_curves(results: RunResults) -> bytes:
    """A PNG with one panel for each stage."""
    stages = results.settings.stages
    figure, panels = make_figure(len(stages))
    for stage, panel in zip(stages, panels, strict=True):
        _draw_stage(results, stage, panel)
    settings = results.settings
    figure.suptitle(plain(f"{settings.env}, {settings.agents} × {settings.agent}, preset {settings.preset.name}"))
    return finish(figure, panels, scale_of(settings))


def plain(text: str) -> str:
    """A string of a person's for a figure: shown as it is, no formula, no label that legends leave out."""
    line = "".join(each if each.isprintable() else " " for each in text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line


def make_figure(panels: int, width: float = 3.2, height: float = 4.2) -> tuple[Figure, list[Axes]]:
    """A figure with a row of panels, each so many inches wide and high."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.0, width * panels), height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, panels, sharey=True, squeeze=False)[0])


def finish(figure: Figure, panels: Sequence[Axes], scale: Scale) -> bytes:
    """Axes of win rates or scores over steps, one legend for all panels, and the PNG."""
    for panel in panels:
        panel.set_xlabel("environment steps")
        panel.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        panel.locator_params(axis="x", nbins=4)
        panel.set_xlim(left=0)  # one point or few would stand on an axis that begins beside them
    return save(figure, panels, 2 * len(panels), scale)


def save(figure: Figure, panels: Sequence[Axes], columns: int, scale: Scale) -> bytes:
    """Axes of win rates or scores, one legend for all panels in so many columns at most, and the PNG."""
    handles: dict[str, Artist] = {}
    for panel in panels:
        if scale is WIN_RATES:
            panel.set_ylim(-2, 102)
            panel.set_yticks(np.arange(0, 101, 20))
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    panels[0].set_ylabel(scale.label)
    columns = max(1, min(len(handles), columns))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False)
    return to_png(figure)


def to_png(figure: Figure) -> bytes:
    """The PNG of a figure."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=130, metadata={"Software": None})
    return data.getvalue()


def _draw_stage(results: RunResults, stage: str, panel: Axes) -> None:
    scale = scale_of(results.settings)
    for k, seed in enumerate(results.settings.seeds):
        colour = COLOURS[k % len(COLOURS)]
        windowed = results.settings.windowed
        lines = [line for line in results.select("train", seed, stage=stage) if windowed in line]
        start = results.start_of(seed, stage)
        if lines:
            steps, means = zip(
                *((line["total_steps"] - start, scale.factor * line[windowed]) for line in lines), strict=True
            )
            panel.plot(steps, means, color=colour, linewidth=1.6, label=f"training, seed {seed}")
        for name in results.settings.preset.watched_sets:
            play = results.settings.preset.selection_play
            points = results.select("evaluation", seed, stage=stage, set=name, play=play, manual=TRUE_MANUAL)
            if points:
                # An evaluation after a phase stands where the phase ended; hollow markers are held-out games.
                steps, means = zip(
                    *((line["total_steps"] - start, scale.factor * line[scale.quantity]) for line in points),
                    strict=True,
                )
                face = colour if name == "train" else "white"
                label = plain(f"evaluation ({play}), {name}") if k == 0 else None
                marker = "o" if name == "train" else "D"
                panel.plot(
                    steps, means, marker, color=colour, markerfacecolor=face, markersize=6, label=label, zorder=3
                )
        if k == 0 and len(results.settings.preset.of_stage(stage)) > 1:
            for ended in results.select("phase", seed, stage=stage, phase=IMITATE):
                panel.axvline(ended["total_steps"] - start, color="0.6", linewidth=1.0, label="imitation ends")
    others = results.baselines.get(f"{stage}/train", {})
    for who, style in (("oracle", "--"), ("random", ":")):
        if who in others:
            mean = scale.factor * others[who][scale.quantity]
            panel.axhline(mean, color="0.35", linestyle=style, linewidth=1.2, label=who)
    panel.set_title(plain(results.settings.stage_name(stage)), fontsize=11)
