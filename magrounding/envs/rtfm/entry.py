"""The environments of Read to Fight Monsters, with the papers' results: win rates of 5 seeds."""

from __future__ import annotations

from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.envs.rtfm.ontology import PROSE_SPLITS, ROCK_PAPER_SCISSORS, STAGES, TASKS
from magrounding.envs.rtfm.text import LAYOUTS
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

RTFM: PublishedResults = {
    ("simple_stationary", "train"): PublishedResult(0.84, 0.21, "txt2π, RTFM table 1"),
    ("simple_stationary", "eval"): PublishedResult(0.83, 0.21, "txt2π, RTFM table 1"),
    ("simple_stationary", "eval_10x10"): PublishedResult(0.66, 0.22, "txt2π, RTFM table 1"),
    ("simple", "train"): PublishedResult(0.85, 0.09, "txt2π, RTFM table 2"),
    ("group", "train"): PublishedResult(0.77, 0.10, "txt2π, RTFM table 2"),
    ("nl", "train"): PublishedResult(0.65, 0.17, "txt2π, RTFM table 2"),
    ("nl", "eval"): PublishedResult(0.55, 0.22, "txt2π, RTFM table 3"),
    ("nl", "eval_10x10"): PublishedResult(0.55, 0.27, "txt2π trained on 6×6, RTFM table 3"),
}

_FRL = "FRL backwards, which learns from 100,000 sequences of sub-goals and sees a list of all objects"


def _table_2(model: str, *rates: tuple[float, float]) -> PublishedResults:
    """Table 2 of EnDi: mean and standard deviation of a model in each set."""
    source = f"two agents of {model}, EnDi table 2"
    sets = ("train", "eval", "eval_new", "eval_10x10")
    return {("s5", name): PublishedResult(*rate, source) for name, rate in zip(sets, rates, strict=True)}


RTFM_OTHERS: tuple[PublishedResults, ...] = (
    {
        ("nl", "eval"): PublishedResult(0.842, 0.003, f"{_FRL}, Wang et al. 2021, table 1"),
        ("nl", "eval_10x10"): PublishedResult(0.957, 0.001, f"{_FRL}, trained on 10×10, Wang et al. 2021, table 1"),
    },
)
"""The best that is published of the full task, "Feudal reinforcement learning by reading manuals", arXiv 2110.06477."""

MA_RTFM: PublishedResults = {
    ("s1", "train"): PublishedResult(0.995, 0.005, "two agents of every model, 99 to 100 %, EnDi section 5.2"),
    **_table_2("EnDi(dis)", (0.59, 0.01), (0.61, 0.01), (0.56, 0.00), (0.62, 0.02)),
}
"""EnDi's table of txt2π in stages S2 to S5 is not available to us."""

MA_RTFM_ABLATIONS: tuple[PublishedResults, ...] = (
    _table_2("EnDi-sup", (0.38, 0.11), (0.39, 0.10), (0.36, 0.10), (0.44, 0.11)),
    _table_2("EnDi-reg", (0.39, 0.02), (0.38, 0.02), (0.35, 0.02), (0.41, 0.00)),
)

ENVS = (
    EnvEntry(
        id="rtfm",
        game="magrounding.envs.rtfm.games:Rtfm",
        stage_option="task",
        stages=tuple(TASKS),
        curriculum=("simple_stationary", "simple", "group", "nl"),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        other_oracles={"rollout": "magrounding.envs.rtfm.oracle:RolloutOracle"},
        layouts=LAYOUTS,
        version=1,
        evaluation=EvaluationPlan(
            sets=_SETS,
            rules_text="manual",
            published="magrounding.envs.rtfm.entry:RTFM",
            published_others="magrounding.envs.rtfm.entry:RTFM_OTHERS",
            note=_NOTE,
            aliases=_ALIASES,
        ),
    ),
    EnvEntry(
        id="rock_paper_scissors",
        game="magrounding.envs.rtfm.games:RockPaperScissors",
        stage_option="task",
        stages=tuple(ROCK_PAPER_SCISSORS),
        curriculum=("permutation",),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        version=1,
        evaluation=EvaluationPlan(by_split(("train", "eval")), rules_text="manual"),
    ),
    EnvEntry(
        id="ma_rtfm",
        game="magrounding.envs.rtfm.games:MaRtfm",
        stage_option="stage",
        stages=tuple(STAGES),
        curriculum=("s1", "s2", "s3", "s4", "s5"),
        oracle="magrounding.envs.rtfm.oracle:Oracle",
        other_oracles={
            "rollout": "magrounding.envs.rtfm.oracle:RolloutOracle",
            "silent": "magrounding.envs.rtfm.oracle:SilentOracle",
        },
        multi_agent=True,
        layouts=LAYOUTS,
        version=1,
        evaluation=EvaluationPlan(
            sets=_SETS,
            stage_sets={"s6": _PROSE_SETS},
            rules_text="manual",
            published="magrounding.envs.rtfm.entry:MA_RTFM",
            published_ablations="magrounding.envs.rtfm.entry:MA_RTFM_ABLATIONS",
            note=_NOTE,
            aliases=_ALIASES,
        ),
    ),
)
