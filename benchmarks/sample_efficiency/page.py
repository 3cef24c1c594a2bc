"""The measured sample efficiency as Markdown, JSON and a figure, with the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.sample_efficiency.posterior import CREDIBLE, LOWEST, TARGET, Curve
from magrounding.experiment.markdown import code
from magrounding.experiment.plots import COLOURS, make_figure, to_png
from magrounding.experiment.tables import Table, page

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
PAPER_PRETRAINED: Mapping[tuple[tuple[str, ...], str], tuple[float, float]] = {
    (("GoToLocal",), "GoTo"): (183_000, 216_000),
    (("GoToObjMaze",), "GoTo"): (444_000, 602_000),
    (("GoToLocal", "GoToObjMaze"), "GoTo"): (173_000, 216_000),
    (("GoToLocal",), "PickupLoc"): (71_200, 88_900),
    (("GoToLocal",), "PutNextLocal"): (188_000, 231_000),
}
"""Base levels and target → the paper's 99 % interval of demonstrations after pretraining (BabyAI table 4)."""
PAPER_INTERACTIVE: Mapping[str, tuple[float, float]] = {
    "GoToRedBallGrey": (1_710, 1_880),
    "GoToRedBall": (31_800, 36_000),
    "GoToLocal": (93_000, 107_000),
}
"""Level → the paper's 99 % interval of interactive imitation (BabyAI table 5)."""


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
        """Mean over seeds, where all of them solve the level."""
        return None if None in self.episodes else float(np.mean([each for each in self.episodes if each is not None]))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the t-test over seeds, as in the paper's appendix A.1; None of one seed."""
        solved = [each for each in self.episodes if each is not None]
        if len(solved) < len(self.episodes) or len(solved) < 2:
            return None
        from scipy.stats import t  # takes longer to import than many a command takes

        half = t.ppf((1 + CREDIBLE) / 2, len(solved) - 1) * np.std(solved, ddof=1) / len(solved) ** 0.5
        return float(np.mean(solved) - half), float(np.mean(solved) + half)

    @property
    def note(self) -> str:
        unsolved = sum(each is None for each in self.episodes)
        return f"not solved by {unsolved} of {len(self.episodes)} seeds" if unsolved else ""


Level = Demonstrations | Episodes


@dataclass(frozen=True)
class Question:
    """A comparison of two ways to learn a level from demonstrations, which a table of the paper asks for.

    Attributes:
        name: of its files.
        title, how: of its page, and how it is measured.
        usual, other: the two ways.
    """

    name: str
    title: str
    usual: str
    other: str
    how: str


_CURVES = (
    f"Numbers are medians and {CREDIBLE:.0%} credible intervals of the same Gaussian process as for table 3, fitted to "
    f"runs of {LOWEST:.0%} and more; success is that of greedy play in missions of `test`."
)
PRETRAINING = Question(
    "pretraining",
    f"# BabyAI table 4: demonstrations until {TARGET:.0%} of missions succeed, after pretraining",
    "from scratch",
    "pretrained",
    f"Base levels are learnt once, one after another, from as many demonstrations as the preset has; each run of the "
    f"target begins with those weights. {_CURVES}",
)
INTERACTIVE = Question(
    "interactive",
    f"# BabyAI table 5: demonstrations until {TARGET:.0%} of missions succeed, chosen by failures",
    "cloning",
    "interactive",
    "Each round trains an agent from scratch; the next one gets demonstrations, too, of missions of `train` that this "
    f"agent failed. {_CURVES} Those of `cloning` are of table 3's sweep, where it lies beside. DAgger is counted in "
    f"games that the agent plays and the bot labels, until {TARGET:.0%} of a window of them succeed.",
)


@dataclass(frozen=True)
class Pair:
    """A level in the two ways of a question.

    Attributes:
        name: of the row.
        usual: the usual way; None where it was not run.
        other: the way that is asked about.
        paper: the paper's 99 % intervals of the two.
        dagger: labelled games instead of demonstrations; None where it was not asked.
    """

    name: str
    usual: Demonstrations | None
    other: Demonstrations
    paper: tuple[tuple[float, float], tuple[float, float]]
    dagger: Episodes | None = None

    @property
    def ratio(self) -> float | None:
        """Number that the other way takes over that of the usual one."""
        usual = None if self.usual is None else self.usual.estimate
        return None if usual is None or self.other.estimate is None else self.other.estimate / usual


def markdown(levels: Sequence[Level], command: str) -> str:
    """The table, how to read it, and the points."""
    imitation = isinstance(levels[0], Demonstrations)
    what = "demonstrations" if imitation else "episodes of PPO"
    table = Table.of(
        levels,
        {
            "level": lambda each: each.level,
            what: lambda each: None if each.estimate is None else f"{each.estimate:,.0f}",
            f"{CREDIBLE:.0%} interval": lambda each: _range(each.interval),
            "the paper's": lambda each: _range(each.paper),
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
        else "Episodes until 99 % of a window of training games are won: mean over seeds, and the interval of a t-test."
    )
    return page(
        f"# BabyAI table 3: {what} until {TARGET:.0%} of missions succeed",
        how,
        table.markdown(),
        "![success over numbers of demonstrations, with the fitted curves](efficiency.png)" if imitation else "",
        "\n".join(_points(each.level, each) for each in levels if isinstance(each, Demonstrations)),
        f"Command: {code(command)}",
    )


def compared(pairs: Sequence[Pair], question: Question, command: str) -> str:
    """The page of a question: the table, how to read it, and the points."""
    table = Table.of(
        pairs,
        {
            "level": lambda each: each.name,
            question.usual: lambda each: None if each.usual is None else _number(each.usual),
            question.other: lambda each: _number(each.other),
            "ratio": lambda each: each.ratio,
            f"the paper's, {question.usual}": lambda each: _range(each.paper[0]),
            f"the paper's, {question.other}": lambda each: _range(each.paper[1]),
            "the paper's ratio": lambda each: float(np.mean(each.paper[1]) / np.mean(each.paper[0])),
            "games of DAgger": lambda each: None if each.dagger is None else _number(each.dagger),
            "": lambda each: each.other.note or None,
        },
    )
    points = [
        _points(f"{pair.name}, {way}", each)
        for pair in pairs
        for way, each in ((question.usual, pair.usual), (question.other, pair.other))
        if each is not None
    ]
    figure = f"![success over numbers of demonstrations, with the fitted curves]({question.name}.png)"
    parts = question.title, question.how, table.markdown(), figure, "\n".join(points)
    return page(*parts, f"Command: {code(command)}")


def _number(of: Level) -> str | None:
    """The estimate with its interval, as far as they are known."""
    if of.estimate is None:
        return None
    return f"{of.estimate:,.0f}" + ("" if of.interval is None else f" ({_range(of.interval)})")


def _points(name: str, of: Demonstrations) -> str:
    return f"* {name}: " + ", ".join(f"{k:,}: {rate:.1%}" for k, rate in of.points)


def _range(ends: tuple[float, float] | None) -> str | None:
    return None if ends is None else f"{ends[0]:,.0f} to {ends[1]:,.0f}"


def to_json(levels: Sequence[Level]) -> dict[str, Any]:
    """All numbers."""
    return {each.level: {**_entry(each), "paper": each.paper} for each in levels}


def compared_to_json(pairs: Sequence[Pair], question: Question) -> dict[str, Any]:
    """All numbers of a question's page."""
    found = {}
    for each in pairs:
        ways = {question.usual: each.usual, question.other: each.other, "dagger": each.dagger}
        measured = {way: _entry(of) for way, of in ways.items() if of is not None}
        found[each.name] = {**measured, "ratio": each.ratio, "paper": each.paper}
    return found


def _entry(of: Level) -> dict[str, Any]:
    entry: dict[str, Any] = {"estimate": of.estimate, "interval": of.interval, "note": of.note}
    if isinstance(of, Episodes):
        return {**entry, "episodes": of.episodes}
    entry["points"] = list(of.points)
    if of.curve is not None:
        curve = asdict(of.curve)
        entry["curve"] = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in curve.items()}
    return entry


def plot(levels: Sequence[Level]) -> bytes:
    """A PNG with a panel for each level: its runs, and the fitted curve with two deviations around it."""
    figure, panels = make_figure(len(levels), alike=False)
    for each, panel in zip(levels, panels, strict=True):
        panel.set_title(each.level, fontsize=10)
        if isinstance(each, Episodes):
            solved = [(seed, n) for seed, n in enumerate(each.episodes) if n is not None]
            panel.plot([seed for seed, _ in solved], [n for _, n in solved], "o", color=COLOURS[0])
            panel.set_xlabel("seed")
            continue
        _draw(panel, each, *COLOURS[:2])
    panels[0].set_ylabel("episodes" if isinstance(levels[0], Episodes) else "missions of test (%)")
    return to_png(figure)


def plot_compared(pairs: Sequence[Pair], question: Question) -> bytes:
    """A PNG with a panel for each pair: both ways as `plot` draws a level, each in a colour of its own."""
    figure, panels = make_figure(len(pairs), alike=False)
    for pair, panel in zip(pairs, panels, strict=True):
        panel.set_title(pair.name, fontsize=10)
        ways = (question.usual, pair.usual), (question.other, pair.other)
        for colour, (way, each) in zip(COLOURS, ways, strict=False):
            if each is not None:
                _draw(panel, each, colour, colour, way)
        panel.legend(fontsize=8, loc="lower right")
    panels[0].set_ylabel("missions of test (%)")
    return to_png(figure)


def _draw(panel: Axes, of: Demonstrations, dots: str, line: str, name: str | None = None) -> None:
    panel.set_xscale("log", base=2)
    panel.plot([k for k, _ in of.points], [100 * r for _, r in of.points], "o", color=dots, markersize=4, label=name)
    if (curve := of.curve) is not None:
        band = 100 * (curve.mean - 2 * curve.std), np.minimum(100 * (curve.mean + 2 * curve.std), 100)
        panel.fill_between(curve.samples, *band, color=line, alpha=0.2, linewidth=0)
        panel.plot(curve.samples, 100 * curve.mean, color=line)
        if of.interval is not None:
            panel.axvspan(*of.interval, color="0.85", zorder=0)
    panel.axhline(100 * TARGET, color="0.4", linewidth=0.8, linestyle="--")
    panel.set_xlabel("demonstrations")
    panel.grid(alpha=0.3)
