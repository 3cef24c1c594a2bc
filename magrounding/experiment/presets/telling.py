"""Presets for manuals that are split among agents, who win only by telling one another."""

from __future__ import annotations

from dataclasses import replace

from magrounding.experiment.config import REMAINING_STAGES
from magrounding.experiment.phase import Ramp
from magrounding.experiment.presets.rtfm import QUICK_MA_RTFM, imitate

_LED = 40_000
"""Steps in which the teacher still plays."""

TELLING = replace(
    QUICK_MA_RTFM,
    preset="telling",
    about=(
        "Each agent reads other statements of the manual and learns, by imitation of an oracle that tells, which of "
        "them to tell: minutes on two CPU cores with the relational reader; episodes of at most 80 steps. Where "
        "monsters move, nothing does in the first steps of a game, until that is learnt."
    ),
    stages=("s2g", "s4", "s5"),
    phases={
        "s2g": (imitate(400_000, _LED),),
        "s4": (imitate(200_000, _LED, talk=Ramp(3.0, 0.0, hold=80_000, over=80_000)),),
        REMAINING_STAGES: (imitate(400_000, _LED, talk=Ramp(3.0, 0.0, hold=100_000, over=150_000)),),
    },
    env_options={**QUICK_MA_RTFM.env_options, "reading": "kind"},
)
