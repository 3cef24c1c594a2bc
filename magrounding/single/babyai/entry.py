"""The environment BabyAI."""

from __future__ import annotations

from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.babyai.options import LEVELS, SPLITS

ENVS = (
    EnvEntry(
        id="babyai",
        game="magrounding.single.babyai:BabyAI",
        stage_option="level",
        stages=LEVELS,
        curriculum=("GoToLocal",),
        evaluation=EvaluationPlan(
            sets=by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.babyai.published:BABYAI",
            reading_set="test",
            max_envs=128,
            baseline_share=1 / 8,
        ),
    ),
)
