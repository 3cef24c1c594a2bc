"""Parts of all figures: panels in rows, axes of win rates or scores, one legend below, and series of points."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from magrounding.experiment.config import RunConfig
    from magrounding.experiment.statistics import Interval

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


def scale_of(settings: RunConfig, stage: str) -> Scale:
    """The quantity of figures about a stage."""
    return SCORES if settings.measure(stage) == SCORES.quantity else WIN_RATES


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
