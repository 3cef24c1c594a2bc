"""Two ways to learn levels from demonstrations beside each other (tables 4 and 5), as Markdown, JSON and a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.sample_efficiency.page import Demonstrations, Episodes, Level, draw, entry_of, points_of, range_of
from benchmarks.sample_efficiency.posterior import CREDIBLE, LOWEST, TARGET
from magrounding.experiment.plots import COLOURS, make_figure, to_png
from magrounding.experiment.tables import Table, code, page

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
    "Base levels are learnt once, one after another, from as many demonstrations as the preset has, or the command "
    f"names; each run of the target begins with those weights. {_CURVES}",
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


def compared(pairs: Sequence[Pair], question: Question, command: str) -> str:
    """The page of a question: the table, how to read it, and the points."""
    table = Table.of(
        pairs,
        {
            "level": lambda each: each.name,
            question.usual: lambda each: None if each.usual is None else _number(each.usual),
            question.other: lambda each: _number(each.other),
            "ratio": lambda each: each.ratio,
            f"the paper's, {question.usual}": lambda each: range_of(each.paper[0]),
            f"the paper's, {question.other}": lambda each: range_of(each.paper[1]),
            "the paper's ratio": lambda each: float(np.mean(each.paper[1]) / np.mean(each.paper[0])),
            "games of DAgger": lambda each: None if each.dagger is None else _number(each.dagger),
            "": lambda each: _notes(each, question),
        },
    )
    points = [
        points_of(f"{pair.name}, {way}", each)
        for pair in pairs
        for way, each in ((question.usual, pair.usual), (question.other, pair.other))
        if each is not None
    ]
    figure = f"![success over numbers of demonstrations, with the fitted curves]({question.name}.png)"
    parts = question.title, question.how, table.markdown(), figure, "\n".join(points)
    return page(*parts, f"Command: {code(command)}")


def _notes(pair: Pair, question: Question) -> str | None:
    ways = {question.usual: pair.usual, question.other: pair.other, "DAgger": pair.dagger}
    return "; ".join(f"{way}: {of.note}" for way, of in ways.items() if of is not None and of.note) or None


def _number(of: Level) -> str | None:
    """The estimate with its interval, as far as they are known."""
    if of.estimate is None:
        return None
    return f"{of.estimate:,.0f}" + ("" if of.interval is None else f" ({range_of(of.interval)})")


def compared_to_json(pairs: Sequence[Pair], question: Question) -> dict[str, Any]:
    """All numbers of a question's page."""
    found = {}
    for each in pairs:
        ways = {question.usual: each.usual, question.other: each.other, "dagger": each.dagger}
        measured = {way: entry_of(of) for way, of in ways.items() if of is not None}
        found[each.name] = {**measured, "ratio": each.ratio, "paper": each.paper}
    return found


def plot_compared(pairs: Sequence[Pair], question: Question) -> bytes:
    """A PNG with a panel for each pair: both ways as `plot` draws a level, each in a colour of its own."""
    figure, panels = make_figure(len(pairs), alike=False)
    for pair, panel in zip(pairs, panels, strict=True):
        panel.set_title(pair.name, fontsize=10)
        ways = (question.usual, pair.usual), (question.other, pair.other)
        for colour, (way, each) in zip(COLOURS, ways, strict=False):
            if each is not None:
                draw(panel, each, colour, colour, way)
        panel.legend(fontsize=8, loc="lower right")
    panels[0].set_ylabel("missions of test (%)")
    return to_png(figure)
