"""The environments of Read to Fight Monsters."""

from __future__ import annotations

from magrounding.envs.rtfm.tasks import PROSE_SPLITS, ROCK_PAPER_SCISSORS, STAGES, TASKS
from magrounding.envs.rtfm.text import LAYOUTS
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry
from magrounding.spec import NAMES, SENTENCES

_SETS = {
    **by_split(("train", "eval", "eval_new")),
    "eval_10x10": {"split": "eval", "size": 10},
    "eval_paraphrase": {"split": "eval_paraphrase"},
}

_PROSE_SETS = by_split(PROSE_SPLITS)

_DIFFERENCES = {
    "train": frozenset(),
    "eval": frozenset({NAMES}),
    "eval_new": frozenset({NAMES}),
    "eval_paraphrase": frozenset({NAMES, SENTENCES}),
}

_NOTE = (
    "A seed has the same map in every split, so a network without word embeddings has the same win rate in train, eval "
    "and eval_new."
)

_PLAYED_LIMIT = 80
"""Steps of a game that commands play: its own limit is the paper's 1,000, which a team that has given up walks out."""

ENVS = (
    EnvEntry(
        id="rtfm",
        game="magrounding.envs.rtfm.games:Rtfm",
        stage_option="task",
        stages=tuple(TASKS),
        curriculum=("simple_stationary", "simple", "group", "nl"),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        other_oracles={"rollout": "magrounding.envs.rtfm.rollout_oracle:RolloutOracle"},
        layouts=LAYOUTS,
        played_limit=_PLAYED_LIMIT,
        evaluation=EvaluationPlan(
            sets=_SETS,
            rules_text="manual",
            published="magrounding.envs.rtfm.published:RTFM",
            published_others="magrounding.envs.rtfm.published:RTFM_OTHERS",
            note=_NOTE,
            differences=_DIFFERENCES,
        ),
    ),
    EnvEntry(
        id="rock_paper_scissors",
        game="magrounding.envs.rtfm.games:RockPaperScissors",
        stage_option="task",
        stages=tuple(ROCK_PAPER_SCISSORS),
        curriculum=("permutation",),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        played_limit=_PLAYED_LIMIT,
        evaluation=EvaluationPlan(by_split(("train", "eval")), rules_text="manual"),
    ),
    EnvEntry(
        id="ma_rtfm",
        game="magrounding.envs.rtfm.games:MaRtfm",
        stage_option="stage",
        stages=tuple(STAGES),
        curriculum=("s1", "s2", "s3", "s4", "s5"),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        other_oracles={"rollout": "magrounding.envs.rtfm.rollout_oracle:RolloutOracle"},
        multi_agent=True,
        layouts=LAYOUTS,
        played_limit=_PLAYED_LIMIT,
        evaluation=EvaluationPlan(
            sets=_SETS,
            stage_sets={"s6": _PROSE_SETS},
            rules_text="manual",
            published="magrounding.envs.rtfm.published:MA_RTFM",
            published_ablations="magrounding.envs.rtfm.published:MA_RTFM_ABLATIONS",
            note=_NOTE,
            differences=_DIFFERENCES,
        ),
    ),
)
