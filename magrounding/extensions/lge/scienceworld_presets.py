"""Presets of ScienceWorld: the paper's, and ours for two CPU cores. A stage is a task, and an agent is for one task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VALID, EvaluationConfig, Phase, for_steps
from magrounding.extensions.lge.drrn_learner import DrrnLearnerConfig


def _learn(steps: int, **changes: Any) -> tuple[Phase, ...]:
    """DRRN for so many environment steps of eight games."""
    return (for_steps(DrrnLearnerConfig(**changes), steps, 8),)


def _quickly(steps: int) -> tuple[Phase, ...]:
    """DRRN for two cores: points are small numbers, so that some thousand updates reach them.

    Most of the time goes into the simulator and into reading a thousand actions, hence several updates for each step,
    long unrolls, in which an action is read once, and a target network, whose every version reads it once.
    """
    return _learn(
        steps,
        unroll=16,
        updates=3.0,
        target_every=100,
        learning_rate=1e-3,
        reward_scale=0.05,
        temperature=0.5,
        final_temperature=0.05,
        exploration=steps // 2,
        schedule="stage",
    )


QUICK_TASKS = (
    "find-non-living-thing",
    "find-plant",
    "lifespan-longest-lived",
    "use-thermometer",
    "chemistry-mix-paint-secondary-color",
    "inclined-plane-determine-angle",
)
"""Tasks of different kinds."""

QUICK_SCIENCEWORLD = RunConfig(
    preset="quick",
    about=(
        "DRRN of half the width over the world's own words, 2,560 environment steps for each of six tasks, 10,240 for "
        "others."
    ),
    agent="drrn",
    phases={**{task: _quickly(2_560) for task in QUICK_TASKS}, REMAINING_STAGES: _quickly(10_240)},
    network={"vocabulary": "words", "embedding": 64, "hidden": 64},
    carry_optimizer=False,
    evaluation=EvaluationConfig(selection_games=8, report_games=8, read_always=False, **CHOSEN_ON_VALID),
    log_every=5,
)

PAPER_SCIENCEWORLD = replace(
    QUICK_SCIENCEWORLD,
    preset="paper",
    about=(
        "The paper's DRRN: 8 games, 100,000 steps of each, 10 games of test variations after every 1,000 of them. The "
        "paper's score of a task is the mean of the last tenth of those."
    ),
    phases={REMAINING_STAGES: _learn(800_000)},
    network={},
    evaluation=replace(
        QUICK_SCIENCEWORLD.evaluation,
        every=8_000,
        selection_games=10,
        report_games=100,
        watched_sets=("valid", "test"),
    ),
    log_every=100,
)
