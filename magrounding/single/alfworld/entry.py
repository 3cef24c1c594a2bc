"""The environment ALFWorld."""

from __future__ import annotations

from magrounding.registry import EnvEntry
from magrounding.single.alfworld.scenes import SPLITS

ENVS = (
    EnvEntry(
        id="alfworld",
        game="magrounding.single.alfworld:ALFWorld",
        evaluation_sets={split: {"split": split} for split in SPLITS},
        rules_text="goal",
        published="magrounding.single.alfworld.published:ALFWORLD",
        reading_set="test",
        evaluation_games=64,
    ),
)
