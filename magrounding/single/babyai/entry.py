"""The environment BabyAI, with the paper's results: imitation of the bot from a million demonstrations a level."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.single.babyai.options import LEVELS, SPLITS

_TABLE_2 = {
    "GoToObj": 1.0,
    "GoToRedBallGrey": 1.0,
    "GoToRedBall": 1.0,
    "GoToLocal": 0.998,
    "PutNextLocal": 0.992,
    "PickupLoc": 0.994,
    "GoToObjMaze": 0.999,
    "GoTo": 0.994,
    "Pickup": 0.99,
    "UnblockPickup": 0.99,
    "Open": 1.0,
    "Unlock": 0.984,
    "PutNext": 0.988,
    "Synth": 0.973,
    "SynthLoc": 0.979,
    "GoToSeq": 0.954,
    "SynthSeq": 0.877,
    "GoToImpUnlock": 0.872,
    "BossLevel": 0.77,
}
"""Best success on 512 validation episodes (Chevalier-Boisvert et al. 2019, table 2)."""

BABYAI: PublishedResults = {
    (level, split): PublishedResult(success, None, "Large, a million demonstrations, best of training, BabyAI table 2")
    for level, success in _TABLE_2.items()
    for split in ("valid", "test")
}

ENVS = (
    EnvEntry(
        id="babyai",
        game="magrounding.single.babyai:BabyAI",
        stage_option="level",
        stages=LEVELS,
        curriculum=("GoToLocal",),
        text_view="magrounding.single.babyai.text_view:BabyAIText",
        evaluation=EvaluationPlan(
            by_split(SPLITS),
            rules_text="goal",
            published="magrounding.single.babyai.entry:BABYAI",
            reading_set="test",
            max_envs=128,
            baseline_share=1 / 8,
        ),
    ),
)
