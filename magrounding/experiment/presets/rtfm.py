"""Presets of RTFM for two CPU cores: the relational reader learns in minutes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import EvaluationConfig, Phase, Ramp, for_steps
from magrounding.training.imitation import ImitationConfig
from magrounding.training.ppo import PPOConfig

ENDI: dict[str, float] = {"modelling": 0.1, "division": 0.03}
"""EnDi's λ_sup and λ_reg beside normalised advantages: with the paper's, 1 and 0.1, rewards count for little."""
ENDI_TAUGHT: dict[str, float] = {"modelling": 0.3, "division": 0.1}
"""EnDi's λ_sup and λ_reg beside the loss of imitation, which is larger. Each teammate adds its share of λ_sup: with the
paper's 1 two agents still divide the targets, but of three each leaves all targets to the others."""
_ENDI_AT_FIRST: dict[str, float] = {"modelling": 0.003, "division": 0.003}
"""EnDi's λ_sup and λ_reg while hardly any game is won: with more, agents leave all targets to one another."""


def imitate(steps: int, teacher_steps: int = 20_000, oracle: str = "", **ramps: Ramp) -> Phase:
    """DAgger for `steps` environment steps: small minibatches and three epochs, as encoding texts takes most time."""
    learner = ImitationConfig(
        anneal_steps=steps, teacher_steps=teacher_steps, weights=ENDI_TAUGHT, cost_to_go=3.0, oracle=oracle
    )
    return for_steps(learner, steps, 64, ramps=ramps)


def _reinforce(steps: int, **changes: Any) -> Phase:
    """PPO for `steps` environment steps."""
    learner = PPOConfig(anneal_steps=steps, **{"weights": ENDI, **changes})
    return for_steps(learner, steps, 64)


_DECIDED: dict[str, Any] = {"entropy": 0.004, "final_entropy": 0.0005}
"""Options of PPO where few actions are left to try."""
FINE = {"learning_rate": 5e-4, **_DECIDED}
"""Options of PPO that fine-tunes a trained policy."""
FINEST = {**FINE, "learning_rate": 2e-4}
"""Options of PPO where there is little left to learn."""

QUICK_MA_RTFM = RunConfig(
    preset="quick",
    about=(
        "Imitation of the oracle in every stage, and PPO after it in S2 and S6: minutes on two CPU cores with the "
        "relational reader; episodes of at most 80 steps."
    ),
    agent="relread",
    phases={
        "s1": (imitate(400_000, teacher_steps=96_000),),  # PPO after it did not improve any of five runs
        "s2": (imitate(200_000), _reinforce(50_000, **FINEST)),
        # From here on PPO did not improve any of four runs, and took half of the time.
        "s3": (imitate(200_000),),
        "s4": (imitate(50_000),),
        "s5": (imitate(300_000),),
        "s6": (imitate(400_000, teacher_steps=60_000), _reinforce(400_000, **FINE)),  # with nothing learnt before
    },
    env_options={"max_cycles": 80},
    network={"phrases": True},  # by single words, one goal in sixty is as close to another team's statement
    team_reward=0.5,
    share_from=3,
    carry_optimizer=False,
    evaluation=EvaluationConfig(every=100_000, selection_play="greedy", stage_sets=None),
)

QUICK_RTFM = replace(
    QUICK_MA_RTFM,
    about=(
        "Imitation of the oracle, then PPO, in simple_stationary; imitation of the oracle by roll-outs in all others: "
        "minutes on two CPU cores with the relational reader; episodes of at most 80 steps."
    ),
    phases={
        "simple_stationary": (imitate(250_000, teacher_steps=60_000), _reinforce(50_000, **FINEST)),
        # Roll-outs of one agent cost little. PPO does not improve a policy that has imitated them.
        "nl": (imitate(400_000, oracle="rollout"),),
        REMAINING_STAGES: (imitate(300_000, oracle="rollout"),),
    },
)

QUICK_RL_MA_RTFM = replace(
    QUICK_MA_RTFM,
    preset="quick_rl",
    about=(
        "PPO alone, no teacher: tens of minutes on two CPU cores with the relational reader; episodes of at most 80 "
        "steps."
    ),
    share_from=None,
    evaluation=replace(QUICK_MA_RTFM.evaluation, selection_play="sampled", every=200_000),
    phases={
        "s1": (_reinforce(600_000, weights=_ENDI_AT_FIRST),),
        "s2": (_reinforce(500_000),),
        "s3": (_reinforce(1_000_000, **_DECIDED),),
        "s4": (_reinforce(200_000, **FINE),),
        "s5": (_reinforce(1_000_000, **_DECIDED),),
        "s6": (_reinforce(2_000_000, **_DECIDED),),
    },
)

QUICK_RL_RTFM = replace(
    QUICK_RL_MA_RTFM,
    phases={
        "simple_stationary": (_reinforce(500_000),),
        REMAINING_STAGES: (_reinforce(1_000_000, **_DECIDED),),
    },
)

DEMO = replace(
    QUICK_MA_RTFM,
    preset="demo",
    about=(
        "A demonstration for two CPU cores, about four minutes for three agents: imitation of the oracle in every "
        "stage, with fewer steps than `quick`, so win rates are lower."
    ),
    phases={
        "s1": (imitate(100_000, teacher_steps=40_000),),
        "s2": (imitate(40_000),),
        "s4": (imitate(20_000),),
        "s5": (imitate(80_000),),
        REMAINING_STAGES: (imitate(100_000),),
    },
    evaluation=replace(QUICK_MA_RTFM.evaluation, selection_games=200, report_games=200, stage_sets=("train", "eval")),
    save_every=30.0,
)
