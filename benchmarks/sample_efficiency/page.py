"""The measured sample efficiency as Markdown, JSON and a figure, with the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.sample_efficiency.posterior import CREDIBLE, LOWEST, TARGET, Curve
from magrounding.experiment.plots import COLOURS, make_figure, to_png
from magrounding.experiment.tables import Table, code, page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "GoToRedBallGrey": ((8_431, 12_430), (15_900, 17_400)),
    "GoToRedBall": ((49_670, 62_010), (261_100, 333_600)),
    "GoToLocal": ((148_500, 193_200), (903_000, 1_114_000)),
    "PickupLoc": ((204_300, 241_200), (1_447_000, 1_643_000)),
    "PutNextLocal": ((244_600, 322_700), (2_186_000, 2_727_000)),
    "GoTo": ((341_100, 408_500), (816_000, 1_964_000)),
}
"""Level → the paper's 99 % intervals: demonstrations of its imitation, episodes of its PPO (BabyAI table 3)."""


@dataclass(frozen=True)
class Demonstrations:
    """A level by imitation.

    Attributes:
        level: its name.
        points: (demonstrations, success rate) of each run.
        curve: fitted to them; None where there are too few, which `why` says.
    """

    level: str
    points: Sequence[tuple[int, float]]
    curve: Curve | None
    why: str = ""

    @property
    def paper(self) -> tuple[float, float]:
        return PAPER[self.level][0]

    @property
    def estimate(self) -> float | None:
        """Median of the smallest number of demonstrations."""
        return None if self.curve is None else self.curve.median

    @property
    def interval(self) -> tuple[float, float] | None:
        if self.curve is None or self.curve.low is None or self.curve.high is None:
            return None
        return self.curve.low, self.curve.high

    @property
    def note(self) -> str:
        """Remark on what the interval leaves open."""
        if self.curve is None:
            return self.why
        notes = []
        if self.curve.below > 1 - CREDIBLE:
            notes.append(f"reached at the smallest number with probability {self.curve.below:.2f}")
        if self.curve.above > 1 - CREDIBLE:
            notes.append(f"not reached at the largest with probability {self.curve.above:.2f}")
        return "; ".join(notes)


@dataclass(frozen=True)
class Episodes:
    """A level by reinforcement.

    Attributes:
        level: its name.
        episodes: of each seed until 99 % of a window of training games are won; None where that is never so.
    """

    level: str
    episodes: Sequence[int | None]

    @property
    def paper(self) -> tuple[float, float]:
        return PAPER[self.level][1]

    @property
    def estimate(self) -> float | None:
        """Geometric mean over seeds, where all of them solve the level."""
        return None if None in self.episodes else float(np.exp(np.log(self._solved).mean()))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the t-test over seeds, as in the paper's appendix A.1, of logarithms; None of one seed."""
        if None in self.episodes or len(self.episodes) < 2:
            return None
        from scipy.stats import t  # takes longer to import than many a command takes

        logarithms = np.log(self._solved)
        half = t.ppf((1 + CREDIBLE) / 2, len(logarithms) - 1) * logarithms.std(ddof=1) / len(logarithms) ** 0.5
        return float(np.exp(logarithms.mean() - half)), float(np.exp(logarithms.mean() + half))

    @property
    def _solved(self) -> list[int]:
        return [each for each in self.episodes if each is not None]

    @property
    def note(self) -> str:
        unsolved = sum(each is None for each in self.episodes)
        return f"not solved by {unsolved} of {len(self.episodes)} seeds" if unsolved else ""


Level = Demonstrations | Episodes


def markdown(levels: Sequence[Level], command: str) -> str:
    """The table, how to read it, and the points."""
    imitation = isinstance(levels[0], Demonstrations)
    what = "demonstrations" if imitation else "episodes of PPO"
    table = Table.of(
        levels,
        {
            "level": lambda each: each.level,
            what: lambda each: None if each.estimate is None else f"{each.estimate:,.0f}",
            f"{CREDIBLE:.0%} interval": lambda each: range_of(each.interval),
            "the paper's": lambda each: range_of(each.paper),
            "ratio": lambda each: None if each.estimate is None else f"{np.mean(each.paper) / each.estimate:.0f}",
            "": lambda each: each.note or None,
        },
    )
    how = (
        "A run for each number of demonstrations of the bot, all of as many environment steps; success is that of "
        "greedy play in missions of `test`. The number is the median of the posterior of a Gaussian process (appendix "
        f"A.2 of the paper) that is fitted to runs of {LOWEST:.0%} and more. The paper takes the best smoothed "
        "validation success of a training run, which is higher, and other networks."
        if imitation
        else "Episodes until 99 % of a window of training games are won, which ends a run: geometric mean over seeds, "
        "and the interval of a t-test of logarithms."
    )
    return page(
        f"# BabyAI table 3: {what} until {TARGET:.0%} of missions succeed",
        how,
        table.markdown(),
        f"![{'success by demonstrations, and curves' if imitation else 'episodes of each seed'}](efficiency.png)",
        "\n".join(points_of(each.level, each) for each in levels if isinstance(each, Demonstrations)),
        f"Command: {code(command)}",
    )


def points_of(name: str, of: Demonstrations) -> str:
    """A line with the runs."""
    return f"* {name}: " + ", ".join(f"{k:,}: {rate:.1%}" for k, rate in of.points)


def range_of(ends: tuple[float, float] | None) -> str | None:
    """An interval as a cell."""
    return None if ends is None else f"{ends[0]:,.0f} to {ends[1]:,.0f}"


def to_json(levels: Sequence[Level]) -> dict[str, Any]:
    """All numbers."""
    return {each.level: {**entry_of(each), "paper": each.paper} for each in levels}


def entry_of(of: Level) -> dict[str, Any]:
    """The numbers of a level but the paper's and those of the curve, which follow from its points."""
    entry = {"estimate": of.estimate, "interval": of.interval, "note": of.note}
    if isinstance(of, Episodes):
        return {**entry, "episodes": of.episodes}
    return {**entry, "points": list(of.points)}


def plot(levels: Sequence[Level]) -> bytes:
    """A PNG: a panel for each level, its runs and the fitted curve; or all levels' episodes in one."""
    counted = [each for each in levels if isinstance(each, Episodes)]
    figure, panels = make_figure(1 if counted else len(levels), alike=False)
    if counted:
        draw_episodes(panels[0], counted)
        return to_png(figure)
    swept = [each for each in levels if isinstance(each, Demonstrations)]
    for each, panel in zip(swept, panels, strict=True):
        panel.set_title(each.level, fontsize=10)
        draw(panel, each, *COLOURS[:2])
    panels[0].set_ylabel("missions of test (%)")
    return to_png(figure)


def draw_episodes(panel: Axes, levels: Sequence[Episodes]) -> None:
    """Draw a row for each level: its seeds that solved it, and the paper's interval."""
    for row, each in enumerate(levels):
        solved = [n for n in each.episodes if n is not None]
        panel.plot(solved, [row] * len(solved), "o", color=COLOURS[0], markersize=4, label="" if row else "our seeds")
        panel.plot(each.paper, [row, row], color=COLOURS[1], linewidth=5, label="" if row else "the paper")
    panel.set_xscale("log")
    panel.set_xlabel("episodes")
    panel.set_yticks(range(len(levels)), [each.level for each in levels])
    panel.invert_yaxis()
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)


def draw(panel: Axes, of: Demonstrations, dots: str, line: str, name: str | None = None) -> None:
    """Draw the runs and the curve of a level; by a `name`, where others stand beside, with its interval in colour."""
    panel.set_xscale("log", base=2)
    panel.plot([k for k, _ in of.points], [100 * r for _, r in of.points], "o", color=dots, markersize=4, label=name)
    if (curve := of.curve) is not None:
        band = 100 * (curve.mean - 2 * curve.std), np.minimum(100 * (curve.mean + 2 * curve.std), 100)
        panel.fill_between(curve.samples, *band, color=line, alpha=0.2, linewidth=0)
        panel.plot(curve.samples, np.minimum(100 * curve.mean, 100), color=line)
        if of.interval is not None:
            shade: dict[str, Any] = {"color": "0.85"} if name is None else {"color": line, "alpha": 0.12}
            panel.axvspan(*of.interval, zorder=0, **shade)
    panel.axhline(100 * TARGET, color="0.4", linewidth=0.8, linestyle="--")
    panel.set_xlabel("demonstrations")
    panel.grid(alpha=0.3)
