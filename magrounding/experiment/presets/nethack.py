"""Presets of NetHack: ours for two CPU cores, and SIR as SILG trains it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VALID, EvaluationConfig, Phase, for_steps
from magrounding.experiment.presets.published import as_silg
from magrounding.training.imitation import ImitationConfig
from magrounding.training.ppo import PPOConfig

_VIEW = {"crop": 21, "characters": True}
"""Observation of viewread: the cells around the agent, as glyphs and as characters."""

_LEVEL = {**_VIEW, "level": True}
"""The same, and all that the episode has shown of the level."""

_READER = {"remember": False, "centred": True}
"""Options of viewread: no memory, as most of a view is alike, which shuts a memory before it learns anything."""

_SEARCHER = {**_READER, "places": True}
"""The same, with ways over the level."""


def _imitate(steps: int, led: int | None = None) -> Phase:
    """DAgger from the explorer, which labels all games and leads fewer and fewer of them, none after `led` steps."""
    learner = ImitationConfig(
        unroll=20,
        epochs=3,
        minibatches=1,
        learning_rate=2e-3,
        warm_up=2_000,
        anneal_steps=steps,
        entropy=0.0,
        value_coefficient=0.01,
        teacher_steps=steps if led is None else led,
        teacher_noise=0.1,
    )
    return for_steps(learner, steps, 16)


def _reinforce(steps: int, **changes: Any) -> Phase:
    """PPO, without the explorer."""
    learner = PPOConfig(unroll=40, epochs=2, minibatches=2, warm_up=10_000, anneal_steps=steps, gamma=0.99, **changes)
    return for_steps(learner, steps, 64)


QUICK_NETHACK = RunConfig(
    preset="quick",
    about=(
        "Imitation of the scripted explorer, which leads fewer and fewer of the games and labels them all "
        "(DAgger); the network sees the cells around the agent, and ways over all of the level that was shown. Weights "
        "are chosen on `valid` seeds."
    ),
    agent="viewread",
    phases={REMAINING_STAGES: (_imitate(200_000, led=80_000),)},
    env_options=_LEVEL,
    network=_SEARCHER,
    evaluation=EvaluationConfig(every=100_000, selection_games=200, report_games=400, **CHOSEN_ON_VALID),
)

QUICK_RL_NETHACK = replace(
    QUICK_NETHACK,
    preset="quick_rl",
    about="PPO alone, no expert; the network sees the cells around the agent. Weights are chosen on `valid` seeds.",
    env_options=_VIEW,
    network=_READER,
    phases={REMAINING_STAGES: (_reinforce(2_000_000, learning_rate=7e-4, entropy=0.02, final_entropy=0.003),)},
)

LONG_NETHACK = replace(
    QUICK_NETHACK,
    preset="long",
    about=(
        "Imitation of the scripted explorer (DAgger), then PPO: 45 minutes of one core; the network sees the cells "
        "around the agent. Weights are chosen on `valid` seeds."
    ),
    env_options=_VIEW,
    network=_READER,
    phases={
        REMAINING_STAGES: (
            _imitate(600_000),
            _reinforce(2_000_000, learning_rate=3e-4, entropy=0.005, final_entropy=0.001),
        )
    },
    evaluation=replace(QUICK_NETHACK.evaluation, every=200_000),
)

PAPER_NETHACK = RunConfig(
    preset="paper",
    about=(
        "SIR as SILG trained it there (appendix H): V-trace, 1e8 environment steps, unrolls of 64, a batch of 8 games; "
        "50 steps an episode. Its best variant there is sir_local_conv."
    ),
    agent="sir",
    phases=as_silg(8, unroll=64),
    env_options={"max_cycles": 50},
    network={"embedding": 30, "hidden": 100},
    evaluation=EvaluationConfig(every=2_500_000, selection_games=100, report_games=500, **CHOSEN_ON_VALID),
)
