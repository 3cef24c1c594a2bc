"""Learning curves: of one run, between other players; of several runs, at equal steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from magrounding.experiment.plots import COLOURS, finish, make_figure, plain, scale_of
from magrounding.experiment.results import RunResults
from magrounding.experiment.tables import AFTER, END, TRAINING, WITHIN
from magrounding.play.evaluate import TRUE_MANUAL
from magrounding.play.lineup import ORACLE, RANDOM
from magrounding.training.algorithm import IMITATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from magrounding.experiment.config import RunConfig
    from magrounding.experiment.plots import Scale

_DODGE = 3.0
"""Points that the markers of two evaluation sets are moved apart: they are evaluated at the same steps."""
_FEW_MARKERS = 12
"""Evaluations of a stage; more have smaller markers."""

Points = dict[int, dict[str, float]]
"""Steps → seed → value."""


def plot_curves(run: RunResults) -> bytes:
    """A PNG with one panel for each stage: training games, one line a seed, evaluations, and other players."""
    settings = run.settings
    figure, panels, scales = _of_stages(settings, settings.stages)
    for stage, scale, panel in zip(settings.stages, scales, panels, strict=True):
        trained = run.curve(TRAINING, stage, settings.windowed(stage))
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
    figure.suptitle(plain(f"{settings.env}, {settings.agents} × {settings.agent}, preset {settings.preset}"))
    return finish(figure, panels, scales)


def plot_comparison(runs: Mapping[str, RunResults], stages: Sequence[str]) -> bytes:
    """A PNG with one panel for each stage: evaluations during training, on the set that none learns from.

    A line is the mean over seeds at every step that all of them have.
    """
    from matplotlib.lines import Line2D

    figure, panels, scales = _of_stages(next(iter(runs.values())).settings, stages)
    for stage, scale, panel in zip(stages, scales, panels, strict=True):
        for k, (name, run) in enumerate(runs.items()):
            if stage not in run.settings.stages:
                continue
            colour, watched = COLOURS[k % len(COLOURS)], run.settings.evaluation.watched_sets
            held_out = [which for which in watched if which != "train"][-1:]
            trained = run.curve(TRAINING, stage, run.settings.windowed(stage))
            _line(panel, _means(trained, scale), color=colour, linestyle=":", linewidth=1.2)
            points: Points = {}
            for which in held_out:
                # A phase ends with an evaluation of its best weights: a point only where there is no other.
                within, after = _evaluations(run, stage, scale, which)
                points = _merged(after, within)
            label = plain(f"{name} ({held_out[-1]})" if held_out else name)
            style: dict[str, Any] = {"marker": "D", "markersize": 4, "linewidth": 1.6, "label": label}
            _line(panel, _means(points, scale), color=colour, **style)
        panel.add_line(Line2D([], [], color="0.35", linestyle=":", linewidth=1.2, label="training games"))
    return finish(figure, panels, scales)


def _of_stages(settings: RunConfig, stages: Sequence[str]) -> tuple[Figure, list[Axes], list[Scale]]:
    """A figure with a panel for each stage, and the scale of each."""
    scales = [scale_of(settings, stage) for stage in stages]
    figure, panels = make_figure(len(scales), alike=len(set(scales)) == 1)
    for stage, panel in zip(stages, panels, strict=True):
        panel.set_title(plain(settings.stage_name(stage)), fontsize=11)
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
