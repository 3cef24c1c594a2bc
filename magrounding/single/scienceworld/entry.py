"""The environment ScienceWorld."""

from __future__ import annotations

from magrounding.registry import EnvEntry
from magrounding.single.scienceworld.tasks import SPLITS, TASKS

ENVS = (
    EnvEntry(
        id="scienceworld",
        game="magrounding.single.scienceworld:ScienceWorld",
        stage_option="task",
        stages=TASKS,
        curriculum=("find-non-living-thing",),
        evaluation_sets={split: {"split": split} for split in SPLITS},
        rules_text="task",
        reading_set="test",
        evaluation_games=8,
        note="Scores are of 100; the papers divide them by it.",
    ),
)
