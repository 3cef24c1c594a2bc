"""LGE table 3: DRRN with and without a Guide, on ScienceWorld (Golchha et al. 2024); table 1 is in `guide.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.tables.layout import Cell, Row, Table, Training
from magrounding.envs.published import PublishedResult
from magrounding.extensions.lge.scienceworld_presets import QUICK_TASKS
from magrounding.single.scienceworld.options import TASKS

GUIDE = "runs/scienceworld/guide"
"""Folder of the Guide of `lge_table1` and `lge_table3`, unless they are given another one."""
_OPTION = "guide"
"""Option of networks."""

COLUMNS = tuple(f"T{TASKS.index(task)}" for task in QUICK_TASKS)

_DRRN = (
    *(0.03, 0.03, 0.01, 0.04, 0.08, 0.06, 0.10, 0.13, 0.10, 0.07, 0.20, 0.19, 0.26, 0.56, 0.19),
    *(0.16, 0.09, 0.20, 0.29, 0.11, 0.48, 0.31, 0.47, 0.10, 0.09, 0.13, 0.13, 0.13, 0.19, 0.17),
)
_INC = (
    *(0.04, 0.02, 0.00, 0.02, 0.08, 0.06, 0.08, 0.13, 0.08, 0.06, 0.23, 0.39, 0.18, 0.55, 0.19),
    *(0.18, 0.10, 0.21, 0.30, 0.11, 0.55, 0.33, 0.64, 0.17, 0.16, 0.24, 0.25, 0.21, 0.19, 0.17),
)
_FIX = (
    *(0.02, 0.03, 0.00, 0.03, 0.08, 0.07, 0.11, 0.13, 0.10, 0.06, 0.29, 0.19, 0.56, 0.60, 0.67),
    *(0.17, 0.094, 0.25, 0.27, 0.11, 0.89, 0.32, 0.46, 0.18, 0.05, 0.25, 0.24, 0.21, 0.22, 0.16),
)
"""Scores of T0 to T29 in table 3; DRRN's are copied there from the paper of ScienceWorld."""


def _row(
    id: str, label: str, agent: str, presets: Mapping[str, str], known: tuple[float, ...] = (), *, guided: bool = False
) -> Row:
    network = ((_OPTION, GUIDE),) if guided else ()
    cells = {}
    for name in COLUMNS:
        number = int(name[1:])
        paper = PublishedResult(known[number], None, "LGE table 3") if known else None
        cells[name] = Cell(Training(agent, (TASKS[number],), network=network), TASKS[number], "test", paper)
    return Row(id, label, cells, presets)


_PRESETS = {"quick": "quick", "quick_rl": "quick", "paper": "paper"}
"""Learning by reinforcement alone, as all but the last row do."""


def _presets(name: str) -> dict[str, str]:
    return {asked: f"{own}_{name}" for asked, own in _PRESETS.items()}


LGE: tuple[Table, ...] = (
    Table(
        id="lge_table3",
        title="LGE table 3: six tasks of ScienceWorld, scores on test variations",
        env="scienceworld",
        columns=COLUMNS,
        rows=(
            _row("drrn", "DRRN", "drrn", _PRESETS, _DRRN),
            _row("drrn_bow", "DRRN, a bag of words for each text", "drrn_bow", {"quick": "quick", "quick_rl": "quick"}),
            _row("lge_fix", "LGE fix (ε = .1)", "lge", _presets("lge"), _FIX, guided=True),
            _row("lge_inc", "LGE inc", "lge", _presets("lge_inc"), _INC, guided=True),
            _row("lge_released", "LGE as released", "lge", _presets("lge_released"), guided=True),
            _row("drrn_bc", "behaviour cloning of gold by DRRN's network", "drrn_bc", {"quick": "quick_gold"}),
        ),
        note="The paper's scores are means of the last tenth of evaluations while learning, ours are of an evaluation "
        "after it; its BC and TDT (.08 each on average over 30 tasks) are other networks. Over all 30 tasks the paper "
        "has .17 for DRRN, .20 for LGE inc and .23 for LGE fix.",
        scores=True,
    ),
)


def with_guide(table: Table, folder: Path) -> Table:
    """The table with the Guide of a folder in all rows that have one."""

    def guided(training: Training) -> Training:
        has = _OPTION in dict(training.network)
        return replace(training, network=((_OPTION, str(folder)),)) if has else training

    return replace(table, rows=tuple(row.with_trainings(guided) for row in table.rows))


def guide_of(training: Training) -> Path | None:
    """The folder of a training's Guide, where it is not the usual one."""
    folder = Path(dict(training.network).get(_OPTION, GUIDE))
    return None if folder == Path(GUIDE) else folder
