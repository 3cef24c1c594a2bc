"""The environments of MESSENGER, with the papers' results."""

from __future__ import annotations

from magrounding.envs.messenger.manual import LAYOUTS
from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry

_SPLITS = ("train", "val", "test")

MESSENGER: PublishedResults = {
    ("s1", "test"): PublishedResult(0.85, 0.014, "EMMA, quoted in SILG table 2"),
    ("s3", "test"): PublishedResult(0.22, None, "the best of one agent, quoted in EnDi section 5.2"),
}

MA_MESSENGER: PublishedResults = {
    ("s1", "test"): PublishedResult(0.79, None, "two agents of EnDi(dis), EnDi section 5.3"),
    ("s2", "test"): PublishedResult(0.52, None, "two agents of EnDi(dis), EnDi section 5.3"),
}

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
            published="magrounding.envs.messenger.entry:MESSENGER",
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
            published="magrounding.envs.messenger.entry:MA_MESSENGER",
            reading_set="test",
        ),
    ),
)
