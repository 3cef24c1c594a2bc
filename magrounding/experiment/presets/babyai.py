"""Presets of BabyAI: the paper's, and ours for two CPU cores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VALID, EvaluationConfig, Phase, for_steps
from magrounding.training.imitation import ImitationConfig
from magrounding.training.ppo import PPOConfig


def _clone(games: int, steps: int, num_envs: int = 16, **changes: Any) -> tuple[Phase, ...]:
    """Behaviour cloning of the bot: `games` demonstrations, and environment steps to learn from."""
    learner = ImitationConfig(
        **{
            "unroll": 20,
            "epochs": 1,
            "minibatches": 1,
            "learning_rate": 2e-3,
            "warm_up": 5_000,
            "anneal_steps": steps,
            "beta2": 0.98,
            "weight_decay": 1e-3,
            "entropy": 0.0,
            "value_coefficient": 0.01,
            "demonstrations": games,
            "carry_memory": True,
            **changes,
        }
    )
    return (for_steps(learner, steps, num_envs),)


def _reinforce(steps: int, num_envs: int = 64, **changes: Any) -> tuple[Phase, ...]:
    """PPO alone."""
    learner = PPOConfig(
        **{
            "unroll": 32,
            "learning_rate": 1e-3,
            "warm_up": 5_000,
            "anneal_steps": steps,
            "gamma": 0.97,
            "entropy": 0.02,
            "final_entropy": 0.002,
            **changes,
        }
    )
    return (for_steps(learner, steps, num_envs),)


_READER: dict[str, Any] = {"agent": "viewread", "env_options": {"displacement": True}, "network": {"places": True}}

QUICK_BABYAI = RunConfig(
    preset="quick",
    about="Behaviour cloning of the bot, minutes a level on two CPU cores; the network keeps a map of what it has "
    "seen, and weights are chosen on `valid` missions.",
    **_READER,
    phases={
        level: _clone(games, steps, num_envs=64, learning_rate=4e-3)  # wide batches share what a sample costs
        for level, games, steps in (
            ("GoToObj", 2_000, 400_000),
            ("GoToRedBallGrey", 5_000, 800_000),
            ("GoToRedBall", 5_000, 800_000),
            ("GoToLocal", 10_000, 1_200_000),
            ("PickupLoc", 20_000, 1_200_000),
            ("PutNextLocal", 15_000, 1_600_000),
            ("UnblockPickup", 10_000, 2_400_000),
            ("GoToSeq", 6_000, 2_400_000),
            ("SynthSeq", 6_000, 2_400_000),
            ("GoToImpUnlock", 6_000, 2_400_000),
            ("BossLevel", 6_000, 2_400_000),
            (REMAINING_STAGES, 4_000, 1_200_000),
        )
    },
    evaluation=EvaluationConfig(every=600_000, selection_games=256, report_games=500, **CHOSEN_ON_VALID),
    log_every=200,
)

QUICK_RL_BABYAI = RunConfig(
    preset="quick_rl",
    about="PPO alone, no expert: minutes a level on two CPU cores; the network keeps a map of what it has seen, and "
    "weights are chosen on `valid` missions.",
    **_READER,
    phases={
        "GoToObj": _reinforce(200_000),
        "GoToRedBallGrey": _reinforce(300_000),
        "GoToRedBall": _reinforce(300_000),
        "GoToLocal": _reinforce(400_000),
        "PutNextLocal": _reinforce(
            6_000_000,
            # Chance wins 0.9 % of games: normalised, the advantages of a rollout without a win would be noise.
            num_envs=256,
            normalise_advantages=False,
            reward_scale=20.0,
            gamma=0.99,
            gae_lambda=0.99,
            entropy=0.01,
        ),
        REMAINING_STAGES: _reinforce(3_000_000),
    },
    evaluation=EvaluationConfig(every=100_000, selection_games=256, **CHOSEN_ON_VALID),
)

PAPER_BABYAI = RunConfig(
    preset="paper",
    about=(
        "The paper's baselines (its table 2): the large network clones a million games of the bot, 40 passes in rooms "
        "and 20 in mazes. Unrolls of 80 steps carry memory on instead of computing it anew for each batch."
    ),
    agent="babyai_large",
    phases={
        level: _clone(
            1_000_000,
            passes * 1_000_000 * length,
            unroll=80,
            learning_rate=1e-4,
            warm_up=0,
            final_rate=1.0,
            beta2=0.999,
            weight_decay=0.0,
            clip_gradient=0.0,
            entropy=0.01,
            value_coefficient=0.0,
        )
        for level, passes, length in (
            *((level, 40, 6) for level in ("GoToObj", "GoToRedBallGrey", "GoToRedBall", "GoToLocal", "PickupLoc")),
            ("PutNextLocal", 40, 12),
            (REMAINING_STAGES, 20, 70),
        )
    },
    evaluation=EvaluationConfig(every=10_000_000, selection_games=512, **CHOSEN_ON_VALID),
    log_every=200,
)

PAPER_RL_BABYAI = replace(
    QUICK_RL_BABYAI,
    preset="paper_rl",
    about=(
        "The paper's PPO (its appendix A) with the small network: 64 games, unrolls of 40 steps, rewards times 20; "
        "gradients go back 20 steps."
    ),
    agent="babyai_small",
    env_options={},
    network={},
    phases={
        REMAINING_STAGES: _reinforce(
            50_000_000,
            unroll=40,
            segment=20,
            epochs=4,
            minibatches=2,
            learning_rate=1e-4,
            warm_up=0,
            final_rate=1.0,
            gamma=0.99,
            gae_lambda=0.99,
            entropy=0.01,
            final_entropy=0.01,
            clip_gradient=0.5,
            clip_values=True,
            normalise_advantages=False,
            reward_scale=20.0,
        )
    },
    evaluation=replace(QUICK_RL_BABYAI.evaluation, every=2_500_000, selection_games=512),
)
