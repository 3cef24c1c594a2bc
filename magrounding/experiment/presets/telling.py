"""Presets for manuals that are split among agents, who win only by telling one another."""

from __future__ import annotations

from dataclasses import replace

from magrounding.experiment.config import REMAINING_STAGES
from magrounding.experiment.phase import Phase, Ramp, for_steps
from magrounding.experiment.presets.rtfm import ENDI_TAUGHT, QUICK_MA_RTFM
from magrounding.training.imitation import ImitationConfig


def _imitate(steps: int, **ramps: Ramp) -> Phase:
    """DAgger for `steps` environment steps, as in `quick`."""
    learner = ImitationConfig(anneal_steps=steps, teacher_steps=40_000, weights=ENDI_TAUGHT, cost_to_go=3.0)
    return for_steps(learner, steps, 64, ramps=ramps)


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
        "s2g": (_imitate(400_000),),
        "s4": (_imitate(200_000, talk=Ramp(3.0, 0.0, hold=80_000, over=80_000)),),
        REMAINING_STAGES: (_imitate(400_000, talk=Ramp(3.0, 0.0, hold=100_000, over=150_000)),),
    },
    env_options={**QUICK_MA_RTFM.env_options, "reading": "kind"},
)
