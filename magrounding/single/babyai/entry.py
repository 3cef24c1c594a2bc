"""The environment BabyAI."""

from __future__ import annotations

from magrounding.registry import EnvEntry
from magrounding.single.babyai.options import LEVELS, SPLITS

ENVS = (
    EnvEntry(
        id="babyai",
        game="magrounding.single.babyai:BabyAI",
        stage_option="level",
        stages=LEVELS,
        curriculum=("GoToLocal",),
        evaluation_sets={split: {"split": split} for split in SPLITS},
        rules_text="goal",
        published="magrounding.single.babyai.published:BABYAI",
        reading_set="test",
        evaluation_games=128,
        orientation=1 / 8,
    ),
)
