"""Presets of ALFWorld: SIR as SILG trains it, and imitation of the scripted expert for two CPU cores."""

from __future__ import annotations

from magrounding.experiment.presets.preset import REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.training.imitation import ImitationConfig

QUICK_ALFWORLD = Preset(
    name="quick",
    about="Imitation of the scripted expert (DAgger) by a narrow SIR; weights are chosen on `valid` scenes.",
    agent="sir",
    phases={
        REMAINING_STAGES: (
            Phase(
                ImitationConfig(
                    unroll=20,
                    epochs=1,
                    minibatches=1,
                    learning_rate=2e-3,
                    warm_up=2_000,
                    anneal_steps=150_000,
                    weight_decay=1e-3,
                    entropy=0.0,
                    value_coefficient=0.01,
                    teacher_steps=60_000,
                    teacher_noise=0.05,
                ),
                Promotion(steps=150_000),
                num_envs=16,
            ),
        )
    },
    policy_options={"embedding": 64, "hidden": 64, "width": 128, "channels": (16, 32, 32), "state": True},
    evaluate_every=50_000,
    selection_games=96,
    report_games=200,
    selection_set="valid",
    watched_sets=("valid",),
    stage_sets=("test",),
    final_sets=("test",),
)
