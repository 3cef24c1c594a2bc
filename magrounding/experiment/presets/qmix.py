"""Presets of QMIX, with its program's settings and for two CPU cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES
from magrounding.experiment.phase import for_steps
from magrounding.experiment.presets.messenger import QUICK_RL_MA_MESSENGER
from magrounding.experiment.presets.published import PAPER_MA_MESSENGER, PAPER_MA_RTFM
from magrounding.experiment.presets.rtfm import QUICK_RL_MA_RTFM
from magrounding.training.qmix import QmixConfig


def _qmix(steps: int, num_envs: int, games: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the entries of a preset that QMIX changes, for so many environment steps in every stage."""
    phase = for_steps(QmixConfig(**changes), steps, num_envs, env_options=games or {})
    return {"agent": "qmix", "phases": {REMAINING_STAGES: (phase,)}, "network": {}, "team_reward": 0.0}


_QMIX_SETS: dict[str, Any] = {"stage_sets": ("train", "eval"), "final_sets": ("train", "eval", "eval_new")}
"""Evaluation sets: no larger maps, as a network may be made for one size, and no paraphrases, as QMIX reads nothing."""
_SAME_FOR_ALL: dict[str, Any] = {"team": "mean"}
"""All agents of MESSENGER get the same reward."""
_PYMARL: dict[str, Any] = {"dead_values": "kept"}
"""Option of QMIX's program that its settings, the learner's defaults, do not name."""
_SELDOM: dict[str, Any] = {
    "replay_steps": 100_000,
    "batch": 16,
    "updates": 0.2,
    "state_maps": 16,
    "hypernetwork": 0,
    "trace": 0.8,
}
"""QMIX for two cores: many games at once, and an episode is learnt from three times, not 32, in small steps.

Targets that look one step ahead need a copy of the networks for every step that a win is carried back, far too many.
"""

PAPER_QMIX_MA_RTFM = replace(
    PAPER_MA_RTFM,
    preset="paper_qmix",
    about=(
        "QMIX without language, with its program's settings and EnDi's budget for S1, 1.5e7 environment steps; 8 games "
        "at once, of at most 200 steps while training."
    ),
    **_qmix(15_000_000, 8, {"max_cycles": 200}, **_PYMARL),
    evaluation=replace(PAPER_MA_RTFM.evaluation, **_QMIX_SETS),
)

PAPER_QMIX_MA_MESSENGER = replace(
    PAPER_MA_MESSENGER,
    preset="paper_qmix",
    about="QMIX without language, with its program's settings and EnDi's budget for S1, 3e7 environment steps.",
    **_qmix(30_000_000, 8, exploration=50_000, **_PYMARL, **_SAME_FOR_ALL),
)

_AROUND: dict[str, Any] = {"maps": 16, "reach": 5}
"""Egocentric maps that reach across all of a map of 8 × 8 inside its walls."""

QUICK_QMIX_MA_RTFM = replace(
    QUICK_RL_MA_RTFM,
    preset="quick_qmix",
    about="QMIX without language: tens of minutes a stage on two CPU cores; episodes of at most 80 steps.",
    **{**_qmix(1_000_000, 64, exploration=100_000, **_SELDOM), "network": _AROUND},
    evaluation=replace(QUICK_RL_MA_RTFM.evaluation, **_QMIX_SETS),
)

QUICK_QMIX_MA_MESSENGER = replace(
    QUICK_RL_MA_MESSENGER,
    preset="quick_qmix",
    about="QMIX without language: minutes a stage on two CPU cores; weights are chosen on the games of `val`.",
    **{**_qmix(200_000, 64, exploration=50_000, **_SELDOM, **_SAME_FOR_ALL), "network": {"maps": 16}},
)
