"""`zero_shot.png`: what every run wins on every set, between random and the oracle, and the paper's number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from magrounding.experiment.plots import COLOURS, Scale, make_figure, plain, save, scale_of
from magrounding.experiment.zero_shot import ZeroShot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 0.8
"""Of a set on the axis; the runs share it."""


def plot_zero_shot(results: ZeroShot) -> bytes:
    """A PNG with one panel for each way of playing."""
    figure, panels = make_figure(len(results.plays), width=2 + 1.1 * len(results.sets))
    first = results.contenders[0]
    scale = scale_of(first.settings, first.stage)
    for play, panel in zip(results.plays, panels, strict=True):
        _draw_references(results, scale, panel)
        _draw_runs(results, play, scale, panel)
        panel.set_title(f"{play} play", fontsize=11)
        panel.set_xticks(
            range(len(results.sets)),
            [plain(name) for name in results.sets],
            rotation=25,
            ha="right",
            rotation_mode="anchor",
        )
        panel.set_xlim(-0.5, len(results.sets) - 0.5)
    figure.suptitle(plain(f"{first.title}, {results.episodes:,} games on each set"))
    return save(figure, panels, [scale] * len(panels))


def _draw_references(results: ZeroShot, scale: Scale, panel: Axes) -> None:
    """Random and oracle as lines across each set, the paper's main result as a star."""
    for x, name in enumerate(results.sets):
        for who, style in (("oracle", "--"), ("random", ":")):
            if who in results.baselines[name]:
                mean = scale.factor * results.baselines[name][who][scale.quantity]
                ends = x - _WIDTH / 2, x + _WIDTH / 2
                panel.hlines(mean, *ends, color="0.35", linestyle=style, linewidth=1.3, label=who)
        for paper in results.published[name][:1]:
            panel.errorbar(
                x,
                scale.factor * paper.mean,
                scale.factor * (paper.std or 0),
                fmt="*",
                color="black",
                markersize=10,
                label="paper",
            )


def _draw_runs(results: ZeroShot, play: str, scale: Scale, panel: Axes) -> None:
    names = list(dict.fromkeys(score.who for score in (*results.scores, *results.together)))
    step = _WIDTH / (len(names) + 1)
    for k, who in enumerate(names):
        colour, shift = COLOURS[k % len(COLOURS)], (k + 1) * step - _WIDTH / 2
        for x, name in enumerate(results.sets):
            score = results.score(who, name, play)
            reached = score.over_seeds(scale.quantity)
            if reached is None:
                continue
            below, above = (scale.factor * each for each in (reached.iqm - reached.low, reached.high - reached.iqm))
            if reached.seeds > 1:
                seeds = [scale.factor * summary[scale.quantity] for summary in score.by_seed.values()]
                panel.plot([x + shift] * len(seeds), seeds, ".", color=colour, markersize=4, alpha=0.45)
            panel.errorbar(
                x + shift,
                scale.factor * reached.iqm,
                [[max(0.0, below)], [max(0.0, above)]],
                fmt="o",
                color=colour,
                markersize=6,
                capsize=3,
                linestyle="none",
                label=plain(who),
            )
