"""The environment Touchdown, with SILG's results on Touchdown's own city, which is not ours."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.touchdown.layout import SPLITS

TOUCHDOWN: PublishedResults = {
    ("", "test"): PublishedResult(0.149, 0.018, "SIR + state on SymTD's streets, SILG table 2; people 61.5 %"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

ENVS = (
    EnvEntry(
        id="touchdown",
        game="magrounding.single.touchdown:Touchdown",
        text_view="magrounding.single.touchdown.text_view:TouchdownText",
        evaluation=EvaluationPlan(
            by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.touchdown.entry:TOUCHDOWN",
            other_games=("manual_stop",),  # SILG's walks end at the goal by themselves
            reading_set="test",
            max_envs=64,
        ),
    ),
)
