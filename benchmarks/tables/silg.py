"""The table of SILG (Zhong et al. 2021) whose ALFWorld we play: one agent."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.tables.layout import PAPER, Cell, Row, Table, Training
from magrounding.envs.published import PublishedResult

_SETS = {"valid": "valid", "test": "test"}

_MODELS: dict[str, tuple[str, Mapping[str, str], tuple[tuple[float, float], ...]]] = {
    "choiceread": ("choiceread", {"quick": "quick"}, ()),
    "sir": ("SIR", PAPER, ((0.210, 0.015), (0.160, 0.021))),
    "sir_state": ("SIR + state", PAPER, ((0.236, 0.028), (0.166, 0.029))),
}
"""Agent → what the table calls it, where it is trained, and success on new instructions and on new layouts too."""


def _row(agent: str) -> Row:
    label, presets, known = _MODELS[agent]
    papers = [PublishedResult(*value, "SILG table 2") for value in known] or [None] * len(_SETS)
    cells = {
        head: Cell(Training(agent, ("",)), "", which, paper)
        for (head, which), paper in zip(_SETS.items(), papers, strict=True)
    }
    return Row(agent, label, cells, presets)


SILG: tuple[Table, ...] = (
    Table(
        id="silg_table2",
        title="SILG table 2: its column ALFWorld, success on held-out scenes",
        env="alfworld",
        agents=1,
        columns=tuple(_SETS),
        rows=tuple(map(_row, _MODELS)),
        note="The paper's scenes are ALFRED's: its first number is for new instructions in known rooms, its second for "
        "new rooms as well; by reinforcement. Ours are scenes of this package: `valid` and `test` share no room with "
        "training and, for each type of task, no object. choiceread imitates the scripted expert. Other rows of the "
        "paper: 40 % and 37 % by supervised trajectories and beam search (ALFWorld's authors), people 100 %.",
    ),
)
