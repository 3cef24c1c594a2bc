"""The presets of this package: name, environment, where it stands."""

from magrounding.registry import PresetEntry

_HERE = "magrounding.experiment.presets"

_PRESETS = {
    "paper": {
        "ma_rtfm": "published:PAPER_MA_RTFM",
        "rtfm": "published:PAPER_RTFM",
        "rock_paper_scissors": "published:PAPER_ROCK_PAPER_SCISSORS",
        "messenger": "published:PAPER_MESSENGER",
        "ma_messenger": "published:PAPER_MA_MESSENGER",
        "babyai": "babyai:PAPER_BABYAI",
        "alfworld": "alfworld:PAPER_ALFWORLD",
        "nethack": "nethack:PAPER_NETHACK",
        "touchdown": "touchdown:PAPER_TOUCHDOWN",
    },
    "paper_rl": {"babyai": "babyai:PAPER_RL_BABYAI"},
    "silg": {"rtfm": "published:SILG_RTFM", "messenger": "published:SILG_MESSENGER"},
    "quick": {
        "ma_rtfm": "rtfm:QUICK_MA_RTFM",
        "rtfm": "rtfm:QUICK_RTFM",
        "rock_paper_scissors": "txt2pi:QUICK_LETTERS",
        "messenger": "messenger:QUICK_MESSENGER",
        "ma_messenger": "messenger:QUICK_MA_MESSENGER",
        "babyai": "babyai:QUICK_BABYAI",
        "alfworld": "alfworld:QUICK_ALFWORLD",
        "nethack": "nethack:QUICK_NETHACK",
        "touchdown": "touchdown:QUICK_TOUCHDOWN",
    },
    "quick_rl": {
        "ma_rtfm": "rtfm:QUICK_RL_MA_RTFM",
        "rtfm": "rtfm:QUICK_RL_RTFM",
        "messenger": "messenger:QUICK_RL_MESSENGER",
        "ma_messenger": "messenger:QUICK_RL_MA_MESSENGER",
        "babyai": "babyai:QUICK_RL_BABYAI",
        "nethack": "nethack:QUICK_RL_NETHACK",
        "touchdown": "touchdown:QUICK_RL_TOUCHDOWN",
    },
    "quick_reasons": {"rtfm": "txt2pi:QUICK_REASONS_RTFM", "ma_rtfm": "txt2pi:QUICK_REASONS_MA_RTFM"},
    "telling": {"ma_rtfm": "telling:TELLING"},
    "long": {"nethack": "nethack:LONG_NETHACK"},
    "quick_qmix": {"ma_rtfm": "qmix:QUICK_QMIX_MA_RTFM", "ma_messenger": "qmix:QUICK_QMIX_MA_MESSENGER"},
    "paper_qmix": {"ma_rtfm": "qmix:PAPER_QMIX_MA_RTFM", "ma_messenger": "qmix:PAPER_QMIX_MA_MESSENGER"},
    "demo": {"ma_rtfm": "rtfm:DEMO", "rtfm": "rtfm:DEMO"},
}

_ENDI = ("endi_num", "endi_dis", "endi_sup", "endi_reg")
_RTFM, _LETTERS = ("rtfm", "ma_rtfm"), "rock_paper_scissors"
_SIR = ("sir", "sir_state", "sir_local_conv", "sir_entity_attn", "sir_bert", "sir_all")

_OF_AGENTS = (
    ("quick", "rtfm", "txt2pi:QUICK_RTFM", ("txt2pi",)),
    ("quick", "ma_rtfm", "txt2pi:QUICK_MA_RTFM", ("txt2pi",)),
    ("quick", "ma_rtfm", "txt2pi:QUICK_ENDI", _ENDI),
    ("quick", _LETTERS, "txt2pi:NO_MODULATION_LETTERS", ("txt2pi_no_text_mod",)),
    ("quick", _LETTERS, "txt2pi:CONTROLS", ("txt2pi_no_task_attn", "txt2pi_no_vis_attn", "film", "conv")),
    *(("quick", env, "txt2pi:NO_MODULATION", ("txt2pi_no_text_mod",)) for env in _RTFM),
    *(("quick", env, "txt2pi:NO_TASK_ATTENTION", ("txt2pi_no_task_attn",)) for env in _RTFM),
    *(("quick", env, "txt2pi:CONTROLS", ("txt2pi_no_vis_attn", "film", "conv")) for env in _RTFM),
    ("quick_reasons", "ma_rtfm", "txt2pi:QUICK_REASONS_ENDI", _ENDI),
    *(("quick", env, "sir:QUICK", _SIR) for env in ("rtfm", "ma_rtfm")),
    ("quick", "messenger", "messenger:QUICK_EMMA", ("emma",)),
    ("quick", "messenger", "sir:QUICK_MESSENGER", ("sir_entity_attn", "sir_all")),
    ("quick", "ma_messenger", "messenger:QUICK_MA_EMMA", ("emma",)),
    ("quick", "ma_messenger", "messenger:QUICK_MA_ENDI_EMMA", tuple(f"{id}_emma" for id in _ENDI)),
    ("quick_rl", "messenger", "messenger:QUICK_RL_EMMA", ("emma",)),
)
"""Presets for some agents, which have settings of their own there."""

PRESETS = (
    *(PresetEntry(name, env, f"{_HERE}.{place}") for name, places in _PRESETS.items() for env, place in places.items()),
    *(PresetEntry(name, env, f"{_HERE}.{place}", agents) for name, env, place, agents in _OF_AGENTS),
)
