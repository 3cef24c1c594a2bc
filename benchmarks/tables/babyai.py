"""The table of BabyAI's levels (Chevalier-Boisvert et al. 2019)."""

from __future__ import annotations

from benchmarks.tables.layout import PAPER, QUICK, Cell, Row, Table, Training
from magrounding.single.babyai.entry import BABYAI as PUBLISHED
from magrounding.single.babyai.options import LEVELS

_TEST = "test"


def _rows(agent: str, ending: str, presets: dict[str, str]) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"{level}{ending}",
            f"{level}, {agent}",
            {_TEST: Cell(Training(agent, (level,)), level, _TEST, PUBLISHED[level, _TEST])},
            presets,
        )
        for level in LEVELS
    )


BABYAI: tuple[Table, ...] = (
    Table(
        id="babyai_table2",
        title="BabyAI table 2: imitation of the bot, all levels",
        env="babyai",
        agents=1,
        columns=(_TEST,),
        rows=_rows("viewread", "", QUICK) + _rows("babyai_large", "-babyai_large", PAPER),
        note="The paper's numbers are of its large network after a million demonstrations, the best of its training on "
        "512 missions of validation. `quick` clones 2,000 to 20,000 demonstrations and counts missions of `test`, "
        "which chose nothing; `quick_rl` is PPO without demonstrations. In mazes sampled play gets out of loops that "
        "hold greedy play: see also --play sampled.",
    ),
)
