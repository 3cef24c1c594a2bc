"""Presets of LGE on ScienceWorld: those of DRRN with a Guide, one for each of its schedules; and cloning of gold paths.

Those of LGE want to know where the Guide is: `network.guide=<folder>`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import Phase, Promotion
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig
from magrounding.extensions.lge.learner import FIX, INC, RELEASED, LgeLearnerConfig
from magrounding.extensions.lge.scienceworld_presets import PAPER_SCIENCEWORLD, QUICK_SCIENCEWORLD
from magrounding.training.imitation import ImitationConfig

_ABOUT = {
    FIX: "ε stays at .1",
    INC: "ε rises from .1 to 1",
    RELEASED: "as the published program: ε rises from .1 to 1, one draw for all games",
}


def _guided(base: RunConfig, name: str, guidance: str) -> RunConfig:
    """A preset of DRRN with a Guide."""
    phases = {stage: tuple(_with_guide(phase, guidance) for phase in each) for stage, each in base.phases.items()}
    about = f"LGE, {_ABOUT[guidance]}; else as `{base.preset}`: {base.about}"
    return replace(base, preset=name, about=about, agent="lge", phases=phases)


def _with_guide(phase: Phase, guidance: str) -> Phase:
    learner, steps = phase.learner, phase.until.steps
    assert isinstance(learner, DrrnLearnerConfig)
    assert steps is not None
    return replace(phase, learner=LgeLearnerConfig(**vars(learner), guidance=guidance, guidance_steps=steps))


QUICK_LGE = _guided(QUICK_SCIENCEWORLD, "quick_lge", FIX)
QUICK_LGE_INC = _guided(QUICK_SCIENCEWORLD, "quick_lge_inc", INC)
QUICK_LGE_RELEASED = _guided(QUICK_SCIENCEWORLD, "quick_lge_released", RELEASED)
PAPER_LGE = _guided(PAPER_SCIENCEWORLD, "paper_lge", FIX)
PAPER_LGE_INC = _guided(PAPER_SCIENCEWORLD, "paper_lge_inc", INC)
PAPER_LGE_RELEASED = _guided(PAPER_SCIENCEWORLD, "paper_lge_released", RELEASED)

_CLONE: dict[str, Any] = {"unroll": 10, "teacher_steps": None, "teacher_noise": 0.0, "value_coefficient": 0.0}

QUICK_GOLD = replace(
    QUICK_SCIENCEWORLD,
    preset="quick_gold",
    about="Behaviour cloning of gold paths by DRRN's network, over all valid actions: 4,000 environment steps a task.",
    agent="drrn_bc",
    phases={
        REMAINING_STAGES: (Phase(ImitationConfig(learning_rate=1e-3, **_CLONE), Promotion(steps=4_000), num_envs=8),)
    },
)
