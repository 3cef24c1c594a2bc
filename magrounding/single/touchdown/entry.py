"""The environment Touchdown."""

from __future__ import annotations

from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.touchdown.layout import SPLITS

ENVS = (
    EnvEntry(
        id="touchdown",
        game="magrounding.single.touchdown:Touchdown",
        evaluation=EvaluationPlan(
            sets=by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.touchdown.published:TOUCHDOWN",
            reading_set="test",
            max_envs=64,
        ),
    ),
)
