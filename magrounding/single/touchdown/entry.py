"""The environment Touchdown."""

from __future__ import annotations

from magrounding.registry import EnvEntry
from magrounding.single.touchdown.layout import SPLITS

ENVS = (
    EnvEntry(
        id="touchdown",
        game="magrounding.single.touchdown:Touchdown",
        evaluation_sets={split: {"split": split} for split in SPLITS},
        rules_text="goal",
        published="magrounding.single.touchdown.published:TOUCHDOWN",
        reading_set="test",
        evaluation_games=64,
    ),
)
