"""Presets of Touchdown: ours for two CPU cores, and SIR as SILG trains it."""

from dataclasses import replace

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VALID, EvaluationConfig, for_steps
from magrounding.experiment.presets.published import as_silg
from magrounding.training.imitation import ImitationConfig
from magrounding.training.ppo import PPOConfig

_SIZES = {"embedding": 30, "hidden": 100, "width": 200, "channels": (16, 32, 64)}
"""Sizes of SIR for Touchdown (SILG, app. H)."""

# Off the route the way back depends on the goal, which was never seen: labels of the student's own walks (DAgger) teach
# it to turn round and round.
_CLONE = ImitationConfig(
    unroll=40,
    epochs=1,
    minibatches=1,
    learning_rate=3e-3,
    warm_up=10_000,
    anneal_steps=400_000,
    entropy=0.0,
    value_coefficient=0.01,
    weight_decay=1e-3,
    demonstrations=3_000,
    carry_memory=True,
)
_REINFORCE = PPOConfig(
    unroll=20,
    epochs=2,
    minibatches=2,
    learning_rate=1e-3,
    anneal_steps=600_000,
    gamma=0.97,
    entropy=0.02,
    final_entropy=0.003,
)

QUICK_TOUCHDOWN = RunConfig(
    preset="quick",
    about=(
        "Cloning of walks along the routes; coarse panoramas, turned to where the agent looks; 24 steps a walk. "
        "Weights are chosen on `valid` routes."
    ),
    agent="panoread",
    phases={REMAINING_STAGES: (for_steps(_CLONE, 400_000, 16),)},
    env_options={"patch": 4, "turned": True, "max_cycles": 24},  # twice a route, as 64 are of Touchdown's
    evaluation=EvaluationConfig(every=100_000, selection_games=150, report_games=300, **CHOSEN_ON_VALID),
)

QUICK_RL_TOUCHDOWN = replace(
    QUICK_TOUCHDOWN,
    preset="quick_rl",
    about="PPO alone, no expert; coarse panoramas, turned to where the agent looks; 24 steps a walk.",
    phases={REMAINING_STAGES: (for_steps(_REINFORCE, 600_000, 32),)},
)

PAPER_TOUCHDOWN = RunConfig(
    preset="paper",
    about=(
        "SIR as SILG trained it there (appendix H): V-trace, 1e8 environment steps, unrolls of 64, a batch of 3 games. "
        "Its best variant there is sir_state."
    ),
    agent="sir",
    phases=as_silg(3, unroll=64),
    network=_SIZES,
    evaluation=EvaluationConfig(every=2_500_000, selection_games=150, report_games=300, **CHOSEN_ON_VALID),
)
