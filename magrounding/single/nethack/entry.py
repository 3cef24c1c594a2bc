"""The environment NetHack."""

from __future__ import annotations

from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.nethack.tasks import SILG, SPLITS, TASKS

ENVS = (
    EnvEntry(
        id="nethack",
        game="magrounding.single.nethack:NetHack",
        stage_option="task",
        stages=TASKS,
        curriculum=(SILG,),
        evaluation=EvaluationPlan(
            sets=by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.nethack.published:NETHACK",
            reading_set="test",
            max_envs=32,
        ),
    ),
)
