"""The environments of Read to Fight Monsters."""

from __future__ import annotations

from magrounding.envs.rtfm.layouts import LAYOUTS
from magrounding.envs.rtfm.tasks import PROSE_SPLITS
from magrounding.evaluation_plan import EvaluationPlan, by_split
from magrounding.registry import EnvEntry

_SETS = {
    **by_split(("train", "eval", "eval_new")),
    "eval_10x10": {"split": "eval", "size": 10},
    "eval_paraphrase": {"split": "eval_paraphrase"},
}

_PROSE_SETS = by_split(PROSE_SPLITS)

_ALIASES = {"eval": "train", "eval_new": "train"}

_NOTE = (
    "A seed has the same map in every split, so a network without word embeddings has the same win rate in train, eval "
    "and eval_new."
)

_PLAYED_LIMIT = 80
"""Steps of a game that commands play: its own limit is the paper's 1,000, which a team that has given up walks out."""
_TASKS = (
    "simple_stationary_single_monster",
    "simple_stationary_single_item",
    "simple_stationary",
    "simple",
    "simple_nl",
    "stationary",
    "stationary_nl",
    "group",
    "nl",
)

ENVS = (
    EnvEntry(
        id="rtfm",
        game="magrounding.envs.rtfm.games:Rtfm",
        stage_option="task",
        stages=_TASKS,
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
            aliases=_ALIASES,
        ),
    ),
    EnvEntry(
        id="rock_paper_scissors",
        game="magrounding.envs.rtfm.games:RockPaperScissors",
        stage_option="task",
        stages=("permutation", "released", "new_edge", "new_node"),
        curriculum=("permutation",),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        played_limit=_PLAYED_LIMIT,
        evaluation=EvaluationPlan(by_split(("train", "eval")), rules_text="manual"),
    ),
    EnvEntry(
        id="ma_rtfm",
        game="magrounding.envs.rtfm.games:MaRtfm",
        stage_option="stage",
        stages=("s1", "s2", "s3", "s4", "s5", "s6"),
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
            aliases=_ALIASES,
        ),
    ),
)
