"""The table of BabyAI's levels (Chevalier-Boisvert et al. 2019)."""

from __future__ import annotations

from benchmarks.tables.layout import PAPER, PLACES, QUICK, Cell, Row, Table, Training
from magrounding.single.babyai.entry import BABYAI as PUBLISHED
from magrounding.single.babyai.options import LEVELS

_TEST = "test"
_ROOMS = "GoToObj", "GoToRedBallGrey", "GoToRedBall", "GoToLocal", "PutNextLocal", "PickupLoc"
"""Levels of one room, where all is in view and there is nothing to remember."""


def _row(level: str, agent: str, ending: str, presets: dict[str, str]) -> Row:
    cell = Cell(Training(agent, (level,)), level, _TEST, PUBLISHED[level, _TEST])
    return Row(f"{level}{ending}", f"{level}, {agent}", {_TEST: cell}, presets)


def _quick(level: str) -> dict[str, str]:
    return QUICK | {PLACES: "quick" if level in _ROOMS else PLACES}


BABYAI: tuple[Table, ...] = (
    Table(
        id="babyai_table2",
        title="BabyAI table 2: imitation of the bot, all levels",
        env="babyai",
        agents=1,
        columns=(_TEST,),
        rows=(
            *(_row(level, "viewread", "", _quick(level)) for level in LEVELS),
            *(_row(level, "babyai_large", "-babyai_large", PAPER) for level in LEVELS),
        ),
        note="The paper's numbers are of its large network after a million demonstrations, the best of its training on "
        "512 missions of validation. `quick` clones 2,000 to 20,000 demonstrations and counts missions of `test`, "
        "which chose nothing; `quick_places` clones 4,000 to 6,000 with a memory of places in mazes, and is `quick` in "
        "rooms; `quick_rl` is PPO without demonstrations. In mazes sampled play gets out of loops that hold greedy "
        "play: see also --play sampled.",
    ),
)
