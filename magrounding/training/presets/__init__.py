"""Presets by name and environment. A new one is one more entry."""

from __future__ import annotations

from magrounding.errors import ConfigurationError, choose
from magrounding.training.presets.messenger import (
    QUICK_MA_MESSENGER,
    QUICK_MESSENGER,
    QUICK_RL_MA_MESSENGER,
    QUICK_RL_MESSENGER,
)
from magrounding.training.presets.preset import IMITATE, REINFORCE, REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.training.presets.published import (
    PAPER_MA_MESSENGER,
    PAPER_MA_RTFM,
    PAPER_MESSENGER,
    PAPER_ROCK_PAPER_SCISSORS,
    PAPER_RTFM,
    SILG_MESSENGER,
    SILG_RTFM,
)
from magrounding.training.presets.qmix import (
    PAPER_QMIX_MA_MESSENGER,
    PAPER_QMIX_MA_RTFM,
    QUICK_QMIX_MA_MESSENGER,
    QUICK_QMIX_MA_RTFM,
)
from magrounding.training.presets.rtfm import DEMO, QUICK_MA_RTFM, QUICK_RL_MA_RTFM, QUICK_RL_RTFM, QUICK_RTFM

__all__ = [
    "IMITATE",
    "PRESETS",
    "REINFORCE",
    "REMAINING_STAGES",
    "Phase",
    "Preset",
    "Promotion",
    "default_preset",
    "find_preset",
]

PRESETS: dict[str, dict[str, Preset]] = {
    "paper": {
        "ma_rtfm": PAPER_MA_RTFM,
        "rtfm": PAPER_RTFM,
        "rock_paper_scissors": PAPER_ROCK_PAPER_SCISSORS,
        "messenger": PAPER_MESSENGER,
        "ma_messenger": PAPER_MA_MESSENGER,
    },
    "silg": {"rtfm": SILG_RTFM, "messenger": SILG_MESSENGER},
    "quick": {
        "ma_rtfm": QUICK_MA_RTFM,
        "rtfm": QUICK_RTFM,
        "messenger": QUICK_MESSENGER,
        "ma_messenger": QUICK_MA_MESSENGER,
    },
    "quick_rl": {
        "ma_rtfm": QUICK_RL_MA_RTFM,
        "rtfm": QUICK_RL_RTFM,
        "messenger": QUICK_RL_MESSENGER,
        "ma_messenger": QUICK_RL_MA_MESSENGER,
    },
    "quick_qmix": {"ma_rtfm": QUICK_QMIX_MA_RTFM, "ma_messenger": QUICK_QMIX_MA_MESSENGER},
    "paper_qmix": {"ma_rtfm": PAPER_QMIX_MA_RTFM, "ma_messenger": PAPER_QMIX_MA_MESSENGER},
    "demo": {"ma_rtfm": DEMO, "rtfm": DEMO},
}
"""Name → environment id → preset."""


def find_preset(name: str, env: str) -> Preset:
    """A preset for an environment; ConfigurationError where there is none."""
    by_env = PRESETS[choose("preset", name, tuple(PRESETS))]
    if env not in by_env:
        raise ConfigurationError(f"preset {name!r} is not made for {env!r}; it serves: {', '.join(by_env)}")
    return by_env[env]


def default_preset(env: str) -> str:
    """The name of the preset with the smallest budget for an environment."""
    return next((name for name in ("demo", "quick", "paper") if env in PRESETS[name]), "quick")
