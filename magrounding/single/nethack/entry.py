"""The environment NetHack."""

from __future__ import annotations

from magrounding.registry import EnvEntry
from magrounding.single.nethack.tasks import SILG, SPLITS, TASKS

ENVS = (
    EnvEntry(
        id="nethack",
        game="magrounding.single.nethack:NetHack",
        stage_option="task",
        stages=TASKS,
        curriculum=(SILG,),
        evaluation_sets={split: {"split": split} for split in SPLITS},
        rules_text="goal",
        published="magrounding.single.nethack.published:NETHACK",
        reading_set="test",
        evaluation_games=32,
    ),
)
