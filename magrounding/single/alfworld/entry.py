"""The environment ALFWorld."""

from __future__ import annotations

from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.alfworld.scenes import SPLITS

ENVS = (
    EnvEntry(
        id="alfworld",
        game="magrounding.single.alfworld:ALFWorld",
        evaluation=EvaluationPlan(
            sets=by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.alfworld.published:ALFWORLD",
            reading_set="test",
            max_envs=64,
        ),
    ),
)
