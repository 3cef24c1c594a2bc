"""The tables of EnDi (Ding et al. 2023): two agents, three of them in the figure."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.tables.layout import PAPER, QUICK, QUICK_ONLY, REASONS, Row, Table
from magrounding.envs.messenger.entry import MA_MESSENGER
from magrounding.envs.published import PublishedResult, PublishedResults
from magrounding.envs.rtfm.entry import MA_RTFM, MA_RTFM_ABLATIONS

_VARIANTS = {"endi_num": "EnDi(num)", "endi_dis": "EnDi(dis)", "endi_sup": "EnDi-sup", "endi_reg": "EnDi-reg"}
_STAGES = {"ma_rtfm": ("s1", "s2", "s3", "s4", "s5"), "ma_messenger": ("s1", "s2", "s3")}
"""S4 of `ma_messenger` is ours."""
_QMIX = {"quick": "quick_qmix", "quick_rl": "quick_qmix", "paper": "paper_qmix"}

Columns = Mapping[str, tuple[str, str]]
"""Head → (stage, evaluation set)."""


def _rows(env: str, columns: Columns, published: Mapping[str, PublishedResults]) -> tuple[Row, ...]:
    """Readers by themselves and the variants of EnDi, on relread and as in the paper.

    Args:
        env: environment id.
        columns: what the table shows.
        published: the paper's numbers, by the ids of its own agents.
    """
    own = {"txt2pi": "txt2π"} if env == "ma_rtfm" else {"emma": "EMMA"}
    grounding = "" if env == "ma_rtfm" else "_emma"
    rows = []
    for readers, ending, on, presets in (
        ({"relread": "relread, no division"}, "_relread", " on relread", QUICK),
        ({**own, "sir": "SILG (SIR)"}, grounding, "", REASONS if env == "ma_rtfm" else QUICK_ONLY | PAPER),
    ):
        agents = {agent: (agent, label) for agent, label in readers.items()}
        agents |= {agent + ending: (agent, label + on) for agent, label in _VARIANTS.items()}
        rows += [
            Row.of(agent, label, columns, _STAGES[env], presets, published.get(known))
            for agent, (known, label) in agents.items()
        ]
    return tuple(rows)


def _trained(env: str) -> dict[str, tuple[str, str]]:
    return {stage.upper(): (stage, "train") for stage in _STAGES[env]}


_S5 = {
    "S5 train": ("s5", "train"),
    "S5 eval": ("s5", "eval"),
    "S5 eval (new)": ("s5", "eval_new"),
    "S5 eval (10×10)": ("s5", "eval_10x10"),
}
_TESTED = {stage.upper(): (stage, "test") for stage in _STAGES["ma_messenger"]}
_S1 = {"S1 train": ("s1", "train"), "S1 eval": ("s1", "eval")}

_S1_OF_ALL: PublishedResults = {("s1", "train"): MA_RTFM["s1", "train"]}
_RTFM = {
    "txt2pi": _S1_OF_ALL,
    "sir": _S1_OF_ALL,
    "endi_num": _S1_OF_ALL,
    "endi_dis": MA_RTFM,
    "endi_sup": {**_S1_OF_ALL, **MA_RTFM_ABLATIONS[0]},
    "endi_reg": {**_S1_OF_ALL, **MA_RTFM_ABLATIONS[1]},
}
_EMMA: PublishedResults = {
    ("s1", "train"): PublishedResult(0.57, None, "EnDi section 5.2"),
    ("s2", "train"): PublishedResult(0.04, None, "EnDi section 5.2"),
}
_WITHOUT_LANGUAGE: PublishedResults = {
    ("s1", "train"): PublishedResult(0.64, None, "EnDi section 5.3"),
    ("s1", "eval"): PublishedResult(0.41, None, "EnDi section 5.3"),
}

ENDI: tuple[Table, ...] = (
    Table(
        id="endi_table1_rtfm",
        title="EnDi table 1, multi-agent RTFM: win rates on training games after each stage",
        env="ma_rtfm",
        agents=2,
        columns=tuple(_trained("ma_rtfm")),
        rows=_rows("ma_rtfm", _trained("ma_rtfm"), _RTFM),
        note="The body of the paper's table is not available to us: S1 is what its section 5.2 says of all models, 99 "
        "to 100 %, and S5 is from its table 2.",
    ),
    Table(
        id="endi_table1_messenger",
        title="EnDi table 1, multi-agent MESSENGER: win rates on training games after each stage",
        env="ma_messenger",
        agents=2,
        columns=tuple(_trained("ma_messenger")),
        rows=_rows("ma_messenger", _trained("ma_messenger"), {"emma": _EMMA}),
        note="The body of the paper's table is not available to us: EMMA is from its section 5.2, which also says that "
        "EnDi and SILG succeed in S1, that EnDi reaches at most 81 % in S2, and that all are low in S3.",
    ),
    Table(
        id="endi_table2",
        title="EnDi table 2: generalisation in multi-agent RTFM, after S5",
        env="ma_rtfm",
        agents=2,
        columns=tuple(_S5),
        rows=_rows("ma_rtfm", _S5, _RTFM),
    ),
    Table(
        id="endi_table3",
        title="EnDi table 3: generalisation in multi-agent MESSENGER, games of `test` after each stage",
        env="ma_messenger",
        agents=2,
        columns=tuple(_TESTED),
        rows=_rows("ma_messenger", _TESTED, {"endi_dis": MA_MESSENGER}),
        note="The body of the paper's table is not available to us: EnDi(dis) is from its section 5.3.",
    ),
    Table(
        id="endi_three_agents",
        title="EnDi figure 4: three agents, three items and three monsters, S1 of multi-agent RTFM",
        env="ma_rtfm",
        agents=3,
        columns=tuple(_S1),
        rows=tuple(
            Row.of(agent, label, _S1, ("s1",), presets)
            for agent, label, presets in (
                ("endi_dis_relread", "EnDi(dis) on relread", QUICK),
                ("relread", "relread, no division", QUICK),
                ("endi_dis", "EnDi(dis)", REASONS),
                ("txt2pi", "txt2π", REASONS),
            )
        ),
        note="The paper has curves only, with EnDi(dis) above txt2π.",
        curves=True,
    ),
    Table(
        id="endi_qmix",
        title="EnDi section 5.3: QMIX, which reads nothing, in S1 of multi-agent RTFM",
        env="ma_rtfm",
        agents=2,
        columns=tuple(_S1),
        rows=(
            Row.of("qmix", "QMIX", _S1, ("s1",), _QMIX, _WITHOUT_LANGUAGE),
            Row.of("qmix_relread", "QMIX on relread, which reads", _S1, ("s1",), _QMIX),
            Row.of("qmix_blind", "the same network, every text empty", _S1, ("s1",), _QMIX),
        ),
    ),
)
