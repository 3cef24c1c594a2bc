"""The environments of MESSENGER."""

from __future__ import annotations

from magrounding.envs.messenger.manual import LAYOUTS
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry

_SPLITS = ("train", "val", "test")

ENVS = (
    EnvEntry(
        id="messenger",
        game="magrounding.envs.messenger.games:Messenger",
        stage_option="stage",
        stages=("s1", "s2", "s3"),
        curriculum=("s1", "s2", "s3"),
        oracle="magrounding.envs.messenger.oracle:Oracle",
        layouts=LAYOUTS,
        text_view="magrounding.envs.messenger.text_view:MessengerText",
        evaluation=EvaluationPlan(
            sets=by_split((*_SPLITS, "test_seen_dynamics")),
            rules_text="manual",
            published="magrounding.envs.messenger.published:MESSENGER",
            reading_set="test",
        ),
    ),
    EnvEntry(
        id="ma_messenger",
        game="magrounding.envs.messenger.games:MaMessenger",
        stage_option="stage",
        stages=("s1", "s2", "s3", "s4"),
        curriculum=("s1", "s2", "s3", "s4"),
        oracle="magrounding.envs.messenger.oracle:Oracle",
        multi_agent=True,
        layouts=LAYOUTS,
        text_view="magrounding.envs.messenger.text_view:MessengerText",
        evaluation=EvaluationPlan(
            sets=by_split(_SPLITS),
            rules_text="manual",
            published="magrounding.envs.messenger.published:MA_MESSENGER",
            reading_set="test",
        ),
    ),
)
