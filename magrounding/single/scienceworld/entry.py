"""The environment ScienceWorld."""

from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.scienceworld.options import SPLITS, TASKS

ENVS = (
    EnvEntry(
        id="scienceworld",
        game="magrounding.single.scienceworld:ScienceWorld",
        stage_option="task",
        stages=TASKS,
        curriculum=("find-non-living-thing",),
        evaluation=EvaluationPlan(
            by_split(SPLITS),
            rules_text="task",
            reading_set="test",
            max_envs=8,
            note="Scores are of 100; the papers divide them by it.",
        ),
    ),
)
