"""The table of BabyAI's levels (Chevalier-Boisvert et al. 2019)."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.tables.layout import PAPER, QUICK, Row, Table
from magrounding.single.babyai.entry import BABYAI as PUBLISHED
from magrounding.single.babyai.options import LEVELS

_TEST = "test"


def _row(level: str, agent: str, ending: str, presets: dict[str, str]) -> Row:
    row = Row.of(agent, f"{level}, {agent}", {_TEST: (level, _TEST)}, (level,), presets, PUBLISHED)
    return replace(row, id=f"{level}{ending}")


BABYAI: tuple[Table, ...] = (
    Table(
        id="babyai_table2",
        title="BabyAI table 2: imitation of the bot, all levels",
        env="babyai",
        columns=(_TEST,),
        rows=(
            *(_row(level, "viewread", "", QUICK) for level in LEVELS),
            *(_row(level, "babyai_large", "-babyai_large", PAPER) for level in LEVELS),
        ),
        note="The paper's numbers are of its large network after a million demonstrations, the best of its training on "
        "512 missions of validation. `quick` clones 2,000 to 20,000 demonstrations with a memory of places and "
        "counts missions of `test`, which chose nothing; `quick_rl` is PPO without demonstrations. In "
        "mazes sampled play gets out of loops that hold greedy play: see also --play sampled.",
    ),
)
