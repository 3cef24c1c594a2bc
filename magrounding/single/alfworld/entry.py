"""The environment ALFWorld, with SILG's results: reinforcement learning on ALFRED's scenes, which are not ours."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.alfworld.scenes import SPLITS

ALFWORLD: PublishedResults = {
    ("", "valid"): PublishedResult(0.236, 0.028, "SIR + state, new instructions on ALFRED's own scenes, SILG table 2"),
    ("", "test"): PublishedResult(0.166, 0.029, "SIR + state, and new layouts, on ALFRED's own scenes, SILG table 2"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

ENVS = (
    EnvEntry(
        id="alfworld",
        game="magrounding.single.alfworld:ALFWorld",
        text_view="magrounding.single.alfworld.text_view:ALFWorldText",
        evaluation=EvaluationPlan(
            by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.alfworld.entry:ALFWORLD",
            reading_set="test",
            max_envs=64,
        ),
    ),
)
