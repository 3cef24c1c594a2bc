"""The tables of RTFM (Zhong et al. 2020): one agent."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.tables.layout import QUICK, QUICK_ONLY, REASONS, Cell, Row, Table, Training
from magrounding.envs.published import PublishedResult

_FIRST = "simple_stationary"
_CURRICULUM = (_FIRST, "simple", "group", "nl")

_LETTERS = {
    "released": "five letters, as in the released program, which trains on each held-out cycle in another rotation",
    "permutation": "five letters, held-out cycles",
    "new_edge": "held-out pairs of letters",
    "new_node": "letters never seen",
}
"""Scenario of rock-paper-scissors → what is new in its evaluation games."""
_LETTER_SETS = ("train", "eval")

_SETS = {"train 6×6": "train", "eval 6×6": "eval", "eval 10×10": "eval_10x10"}

_MODELS: dict[str, tuple[str, Mapping[str, str], tuple[tuple[float, float], ...]]] = {
    "relread": ("relread", QUICK, ()),
    "conv": ("conv", REASONS, ((0.24, 0.00), (0.25, 0.01), (0.13, 0.01))),
    "film": ("FiLM", REASONS, ((0.49, 0.01), (0.49, 0.02), (0.32, 0.03))),
    "txt2pi_no_task_attn": ("no_task_attn", REASONS, ((0.49, 0.02), (0.49, 0.02), (0.35, 0.06))),
    "txt2pi_no_vis_attn": ("no_vis_attn", REASONS, ((0.49, 0.02), (0.49, 0.01), (0.40, 0.12))),
    "txt2pi_no_text_mod": ("no_text_mod", REASONS, ((0.49, 0.01), (0.49, 0.02), (0.35, 0.02))),
    "txt2pi": ("txt2π", REASONS, ((0.84, 0.21), (0.83, 0.21), (0.66, 0.22))),
}
"""Agent → what the paper calls it, where it is trained, and its win rates in the columns of table 1."""

_TASKS = {
    "6×6": _FIRST,
    "dyna": "simple",
    "group": "stationary",
    "dyna+group": "group",
    "group+nl": "stationary_nl",
    "dyna+nl": "simple_nl",
    "dyna+group+nl": "nl",
}
"""Column of table 2 → task; there is none for templated language and nothing else."""

_TRANSFERS: dict[str, tuple[str, tuple[str, ...], dict[str, tuple[float, float]]]] = {
    "random": (
        "from random",
        (),
        {
            "6×6": (0.84, 0.20),
            "dyna": (0.26, 0.07),
            "group": (0.25, 0.03),
            "dyna+group": (0.23, 0.02),
            "group+nl": (0.25, 0.03),
            "dyna+nl": (0.23, 0.02),
            "dyna+group+nl": (0.23, 0.02),
        },
    ),
    "6x6": (
        "+6×6",
        _CURRICULUM[:1],
        {
            "dyna": (0.85, 0.09),
            "group": (0.82, 0.19),
            "dyna+group": (0.64, 0.12),
            "group+nl": (0.52, 0.13),
            "dyna+nl": (0.53, 0.18),
            "dyna+group+nl": (0.40, 0.08),
        },
    ),
    "dyna": (
        "+dyna",
        _CURRICULUM[:2],
        {"dyna+group": (0.77, 0.10), "dyna+nl": (0.65, 0.16), "dyna+group+nl": (0.43, 0.04)},
    ),
    "group": ("+group", _CURRICULUM[:3], {"dyna+group+nl": (0.65, 0.17)}),
}
"""Row of table 2 → what it is called, what was learnt before, and the paper's win rates."""

_READERS: tuple[tuple[str, str, Mapping[str, str]], ...] = (("relread", "relread", QUICK), ("txt2pi", "txt2π", REASONS))
_ON_LARGE = (
    "What learnt on 10×10 was counted in the last 1,000 games that it learnt from, and its weights are those that are "
    "best on training games of 6×6."
)


def _published(value: tuple[float, float], table: int) -> PublishedResult:
    return PublishedResult(*value, f"RTFM table {table}")


def _simplest(agent: str) -> Row:
    label, presets, known = _MODELS[agent]
    training = Training(agent, (_FIRST,))
    papers = [_published(value, 1) for value in known] or [None] * len(_SETS)
    cells = {
        head: Cell(training, _FIRST, which, paper) for (head, which), paper in zip(_SETS.items(), papers, strict=True)
    }
    return Row(agent, label, cells, presets)


def _letters(agent: str, scenario: str) -> Row:
    """A model in rock-paper-scissors, narrow: the paper has figures of it and no numbers."""
    columns = {name: (scenario, name) for name in _LETTER_SETS}
    return Row.of(agent, _MODELS[agent][0], columns, (scenario,), QUICK_ONLY)


def _transfers(agent: str, name: str, presets: Mapping[str, str]) -> list[Row]:
    """The rows of table 2: every cell is a task of its own, learnt after those of the row."""
    rows = []
    for id, (label, before, known) in _TRANSFERS.items():
        cells = {}
        for head, value in known.items():
            task = _TASKS[head]
            budget = None if before or task == _FIRST else _FIRST
            cells[head] = Cell(Training(agent, (*before, task), budget), task, "train", _published(value, 2))
        rows.append(Row(f"{agent}-{id}", f"{name}, {label}", cells, presets))
    large = Cell(Training(agent, _CURRICULUM, size=10), "nl", None, _published((0.61, 0.18), 2))
    rows.append(Row(f"{agent}-10x10", f"{name}, +group, to 10×10", {"dyna+group+nl": large}, presets))
    return rows


def _full(agent: str, name: str, presets: Mapping[str, str]) -> list[Row]:
    """The rows of table 3."""
    small, large = Training(agent, _CURRICULUM), Training(agent, _CURRICULUM, size=10)
    return [
        Row(
            f"{agent}-6x6",
            f"{name}, trained on 6×6",
            {
                "train": Cell(small, "nl", "train", _published((0.65, 0.17), 3)),
                "eval 6×6": Cell(small, "nl", "eval", _published((0.55, 0.22), 3)),
                "eval 10×10": Cell(small, "nl", "eval_10x10", _published((0.55, 0.27), 3)),
            },
            presets,
        ),
        Row(
            f"{agent}-10x10",
            f"{name}, trained on 10×10",
            {
                "train": Cell(large, "nl", None, _published((0.61, 0.18), 3)),
                "eval 6×6": Cell(large, "nl", "eval"),
                "eval 10×10": Cell(large, "nl", "eval_10x10", _published((0.43, 0.13), 3)),
            },
            presets,
        ),
    ]


RTFM: tuple[Table, ...] = (
    Table(
        id="rtfm_table1",
        title="RTFM table 1: models on the simplest task, trained on 6×6",
        env="rtfm",
        columns=tuple(_SETS),
        rows=tuple(map(_simplest, _MODELS)),
    ),
    Table(
        id="rtfm_table2",
        title="RTFM table 2: the curriculum, win rates on training games",
        env="rtfm",
        columns=tuple(_TASKS),
        rows=tuple(row for reader in _READERS for row in _transfers(*reader)),
        note=f"From random, every task has the budget of the first, as in the paper. {_ON_LARGE} `nl` alone is no "
        "task here (the paper's: 45.0 % ± 6.0 % from random, 78.0 % ± 24.0 % from 6×6). The text that we have of the "
        "paper has lost the empty cells of +dyna: its columns are inferred.",
    ),
    Table(
        id="rtfm_table3",
        title="RTFM table 3: the full task after the whole curriculum",
        env="rtfm",
        columns=("train", "eval 6×6", "eval 10×10"),
        rows=tuple(row for reader in _READERS for row in _full(*reader)),
        note=_ON_LARGE,
    ),
    *(
        Table(
            id=f"rtfm_rps_{scenario}",
            title=f"RTFM figures 10–12: rock-paper-scissors, {new}",
            env="rock_paper_scissors",
            columns=_LETTER_SETS,
            rows=tuple(_letters(agent, scenario) for agent in _MODELS),
            note="The paper's models are about a third as wide as published, relread as it is; names share a vector in "
            "those that match them. The paper has figures and no numbers, after 50 million steps: FiLM above "
            "conv, txt2π above both and above its ablations.",
            curves=True,
        )
        for scenario, new in _LETTERS.items()
    ),
)
