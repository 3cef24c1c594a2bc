"""Tables as data: rows, the runs that they need, and which number of which run stands where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.teams.evaluate import GREEDY

QUICK = {"quick": "quick", "quick_rl": "quick_rl"}
"""`presets` of a row that two CPU cores can fill."""
QUICK_ONLY = {"quick": "quick"}
"""The same of a row whose world has no preset of reinforcement for two CPU cores."""
PAPER = {"paper": "paper"}
"""`presets` of a row that takes a GPU and days."""
REASONS = QUICK_ONLY | {"quick_reasons": "quick_reasons"} | PAPER
"""The same of a row of RTFM's networks: two CPU cores can fill it where the teacher gives its reasons."""
PRESETS = tuple(QUICK | REASONS)
"""Choices of --preset."""


@dataclass(frozen=True)
class Training:
    """A run that a table needs, whatever the seed.

    Attributes:
        agent: id of the networks.
        stages: in order.
        budget_of: the stage whose phases the first one has instead of its own.
        size: of the maps that the last stage learns on; that stage's own by default.
        network: (name, value) of options of the networks that a table decides.
        games: the same of the environment.
    """

    agent: str
    stages: tuple[str, ...]
    budget_of: str | None = None
    size: int | None = None
    network: tuple[tuple[str, Any], ...] = ()
    games: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Cell:
    """A win rate.

    Attributes:
        training: the run.
        stage: after which, and of whose games.
        evaluation_set: on which; None: the last games that the stage learnt from.
        paper: what stands there in the paper.
    """

    training: Training
    stage: str
    evaluation_set: str | None
    paper: PublishedResult | None = None


@dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        id: what --rows takes.
        label: what the table calls it.
        cells: column → what stands there; nothing in the others.
        presets: --preset → the preset that this row learns with then; it is trained by default with these only.
    """

    id: str
    label: str
    cells: Mapping[str, Cell]
    presets: Mapping[str, str] = field(default_factory=lambda: PAPER)

    @classmethod
    def of(
        cls,
        agent: str,
        label: str,
        columns: Mapping[str, tuple[str, str]],
        stages: tuple[str, ...],
        presets: Mapping[str, str],
        published: PublishedResults | None = None,
    ) -> Row:
        """Return the row of one training: `columns` are the stage and evaluation set of each."""
        training, known = Training(agent, stages), published or {}
        return cls(agent, label, {head: Cell(training, *at, known.get(at)) for head, at in columns.items()}, presets)

    def preset(self, asked: str) -> str:
        """The preset that this row learns with when the command is given `asked`."""
        return self.presets.get(asked, asked)

    def with_trainings(self, change: Callable[[Training], Training]) -> Row:
        """Return the row with every training changed."""
        cells = {head: replace(cell, training=change(cell.training)) for head, cell in self.cells.items()}
        return replace(self, cells=cells)


@dataclass(frozen=True)
class Table:
    """A table of a paper.

    Attributes:
        id: what the command takes.
        title: what it shows, and where that stands in the paper.
        env, agents: environment id and number of agents.
        columns: in order.
        rows: in order.
        note: what a reader of the numbers has to know beside.
        play: greedy, as both papers evaluate, or sampled.
        curves: whether there is also a figure of learning curves.
        scores: it shows scores, of 100, and not win rates.
    """

    id: str
    title: str
    env: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    agents: int = 1
    note: str = ""
    play: str = GREEDY
    curves: bool = False
    scores: bool = False
