"""The environment NetHack, with SILG's results."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.nethack.options import SILG, SPLITS, TASKS

NETHACK: PublishedResults = {
    ("silg", "test"): PublishedResult(0.254, 0.033, "SIR + local conv, 1e8 frames, SILG table 2; people 78.1 %"),
}
"""Success and its deviation over five seeds (Zhong et al. 2021, table 2)."""

ENVS = (
    EnvEntry(
        id="nethack",
        game="magrounding.single.nethack:NetHack",
        stage_option="task",
        stages=TASKS,
        curriculum=(SILG,),
        text_view="magrounding.single.nethack.text_view:NetHackText",
        evaluation=EvaluationPlan(
            by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.nethack.entry:NETHACK",
            reading_set="test",
            max_envs=32,
        ),
    ),
)
