"""Presets of the papers: their learners, settings and budgets, days on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import CHOSEN_ON_VAL, EvaluationConfig, Gate, Phase, for_steps
from magrounding.training.impala import ImpalaConfig
from magrounding.training.ppo import PPOConfig

READS = Gate(win_rate=0.2, reading=0.15)
"""Gate of the papers' learners: networks of RTFM that did not read had at most .03 of reading, others .39 and more
(docs/txt2pi.md); the best published single agent wins .22 of MESSENGER's S3."""


def _as_published(steps: int, num_envs: int) -> tuple[Phase, ...]:
    """V-trace for so many environment steps."""
    return (for_steps(ImpalaConfig(), steps, num_envs, gate=READS),)


def as_silg(num_envs: int, unroll: int = 80, **more: Gate) -> dict[str, tuple[Phase, ...]]:
    """V-trace as SILG trained SIR (appendix H): 1e8 environment steps for every stage."""
    learner = ImpalaConfig(unroll=unroll, learning_rate=5e-4, entropy=0.05)
    return {REMAINING_STAGES: (for_steps(learner, 100_000_000, num_envs, **more),)}


PAPER_MA_RTFM = RunConfig(
    preset="paper",
    about="EnDi's budgets (appendix B): 1.5e7 environment steps for S1, 5e7 for each later stage; 20 games at once.",
    agent="txt2pi",
    phases={"s1": _as_published(15_000_000, 20), REMAINING_STAGES: _as_published(50_000_000, 20)},
    env_options={"max_cycles": 1000, "occupants": 1},
    evaluation=EvaluationConfig(every=2_500_000),
    unlearnt="stop",
)

PAPER_RTFM = replace(
    PAPER_MA_RTFM,
    about="RTFM's budgets (table 2, appendix D): 1e8 environment steps for the first task, 5e7 for each later one.",
    phases={
        "simple_stationary": _as_published(100_000_000, 24),
        REMAINING_STAGES: _as_published(50_000_000, 24),
    },
    evaluation=replace(PAPER_MA_RTFM.evaluation, every=5_000_000),
)

PAPER_ROCK_PAPER_SCISSORS = replace(
    PAPER_RTFM,
    about="The budget of RTFM's appendix on rock-paper-scissors: 5e7 environment steps; 24 games, unrolls of 80.",
    phases={REMAINING_STAGES: _as_published(50_000_000, 24)},
    env_options={"max_cycles": 1000},
)


def _as_messenger(
    steps: int, gamma: float, frozen: tuple[str, ...] = (), weights: Mapping[str, float] | None = None
) -> tuple[Phase, ...]:
    """PPO of MESSENGER's program: one game, buffers of 64 steps, four passes, no schedule."""
    learner = PPOConfig(
        unroll=64,
        epochs=4,
        minibatches=1,
        learning_rate=5e-5,
        warm_up=0,
        final_rate=1.0,
        epsilon=1e-8,
        gamma=gamma,
        clip=0.1,
        final_entropy=0.01,
        clip_gradient=0.0,
        normalised_returns=True,
        weights=weights or {},
    )
    return (for_steps(learner, steps, 1, frozen=frozen, gate=READS),)


_GROUNDED = ("symbols", "key", "reader")
"""Parts of EMMA that find sentences: symbols, keys and, where it is trained, the words' table.

EMMA's program and EnDi's freeze symbols and keys from S2 on; EnDi's second table, for the queries of its division, goes
on learning.
"""

PAPER_MESSENGER = RunConfig(
    preset="paper",
    about=(
        "EMMA's learner, with its discounts and what it freezes after S1, and EnDi's budgets, as EMMA's are hours: "
        "3e7 environment steps for S1, 5e7 for each later stage; one game at a time."
    ),
    agent="emma",
    network={"tied_heads": True},
    phases={"s1": _as_messenger(30_000_000, 0.8), REMAINING_STAGES: _as_messenger(50_000_000, 0.99, _GROUNDED)},
    evaluation=EvaluationConfig(every=500_000, **CHOSEN_ON_VAL),
    unlearnt="stop",
)

_ENDI: Mapping[str, float] = {"modelling": 1.0, "division": 1.0}
"""EnDi's λ_sup and λ_reg in its released program, whose losses are means over the 64 steps; EnDi's paper gives neither.
Beside V-trace, in RTFM, λ_reg is 0.1 (`EnDi.loss_weights`)."""

PAPER_MA_MESSENGER = replace(
    PAPER_MESSENGER,
    about=(
        "EMMA as EnDi trained it (appendix B): 3e7 environment steps for S1, 5e7 for each later stage; one game at a "
        "time."
    ),
    phases={
        "s1": _as_messenger(30_000_000, 0.99, weights=_ENDI),
        REMAINING_STAGES: _as_messenger(50_000_000, 0.99, _GROUNDED, _ENDI),
    },
)

SILG_RTFM = replace(
    PAPER_RTFM,
    preset="silg",
    about="SIR as SILG trained it (appendix H): V-trace, 1e8 environment steps a stage; episodes of at most 80 steps.",
    agent="sir",
    phases=as_silg(24, gate=READS),
    env_options={"max_cycles": 80, "occupants": 1},
)

SILG_MESSENGER = replace(
    SILG_RTFM,
    about=f"{SILG_RTFM.about} SILG also had a step cost 0.02, as it does in RTFM.",
    env_options={"max_cycles": 80},
    network={"symbol_table": True},
    evaluation=replace(SILG_RTFM.evaluation, **CHOSEN_ON_VAL),
)
