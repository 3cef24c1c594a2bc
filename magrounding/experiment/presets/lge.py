"""Presets of LGE on ScienceWorld, one for each schedule of the Guide, and behaviour cloning of gold paths beside it.

Those of LGE want to know where the Guide is: `--network guide=<folder>`.
"""

from __future__ import annotations

from typing import Any

from magrounding.experiment.presets.preset import REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.training.drrn import DrrnLearnerConfig
from magrounding.training.imitation import ImitationConfig
from magrounding.training.lge import FIX, INC, RELEASED, LgeLearnerConfig

QUICK_STEPS, PAPER_STEPS = 20_000, 800_000
"""Environment steps of a task. The paper's are 100,000 in each of 8 games."""

_QUICK_SETS: dict[str, Any] = {
    "evaluate_every": None,
    "selection_games": 10,
    "selection_set": "valid",
    "watched_sets": ("valid",),
    "stage_sets": ("test",),
    "final_sets": ("test",),
    "report_games": 40,
}
_PAPER_SETS: dict[str, Any] = {**_QUICK_SETS, "evaluate_every": 8_000, "report_games": 100}


def _explore(learner: type[DrrnLearnerConfig], steps: int, **options: Any) -> dict[str, tuple[Phase, ...]]:
    return {REMAINING_STAGES: (Phase(learner(exploration=steps, **options), Promotion(steps=steps), num_envs=8),)}


def _lge(name: str, guidance: str, steps: int, sets: dict[str, Any]) -> Preset:
    said = {FIX: "ε stays at .1", INC: "ε rises from .1 to 1", RELEASED: "ε rises from .1 to 1, one draw for all games"}
    return Preset(
        name=name,
        about=f"LGE, {said[guidance]}: {steps:,} environment steps of 8 games for each task.",
        agent="lge",
        phases=_explore(LgeLearnerConfig, steps, guidance=guidance),
        **sets,
    )


QUICK_LGE = _lge("quick_lge", FIX, QUICK_STEPS, _QUICK_SETS)
QUICK_LGE_INC = _lge("quick_lge_inc", INC, QUICK_STEPS, _QUICK_SETS)
PAPER_LGE = _lge("paper_lge", FIX, PAPER_STEPS, _PAPER_SETS)
PAPER_LGE_INC = _lge("paper_lge_inc", INC, PAPER_STEPS, _PAPER_SETS)
PAPER_LGE_RELEASED = _lge("paper_lge_released", RELEASED, PAPER_STEPS, _PAPER_SETS)


def _drrn(name: str, steps: int, sets: dict[str, Any]) -> Preset:
    return Preset(
        name=name,
        about=f"DRRN, for LGE to be compared with: {steps:,} environment steps of 8 games for each task.",
        agent="drrn",
        phases=_explore(DrrnLearnerConfig, steps),
        **sets,
    )


QUICK_DRRN = _drrn("quick_drrn", QUICK_STEPS, _QUICK_SETS)
PAPER_DRRN = _drrn("paper_drrn", PAPER_STEPS, _PAPER_SETS)

QUICK_GOLD = Preset(
    name="quick_gold",
    about="Behaviour cloning of gold paths by DRRN's network, over all valid actions: 4,000 environment steps a task.",
    agent="drrn_bc",
    phases={
        REMAINING_STAGES: (
            Phase(
                ImitationConfig(
                    unroll=10, teacher_steps=None, teacher_noise=0.0, value_coefficient=0.0, learning_rate=1e-4
                ),
                Promotion(steps=4_000),
                num_envs=8,
            ),
        )
    },
    **_QUICK_SETS,
)
