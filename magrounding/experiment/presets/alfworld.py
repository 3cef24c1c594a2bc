"""Presets of ALFWorld: ours for two CPU cores, and SIR as SILG trains it."""

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import EvaluationConfig, for_steps
from magrounding.experiment.presets.published import as_silg
from magrounding.training.imitation import ImitationConfig

_TAUGHT = ImitationConfig(
    unroll=20,
    epochs=3,
    minibatches=2,
    learning_rate=3e-3,
    warm_up=2_000,
    anneal_steps=60_000,
    weight_decay=1e-3,
    entropy=0.0,
    value_coefficient=0.01,
    teacher_steps=60_000,
    teacher_noise=0.1,
)

QUICK_ALFWORLD = RunConfig(
    preset="quick",
    about=(
        "Imitation of the scripted expert, which leads all games at first, ever fewer later, and labels all (DAgger): "
        "minutes on two CPU cores; weights are chosen on `valid` scenes."
    ),
    agent="choiceread",
    phases={REMAINING_STAGES: (for_steps(_TAUGHT, 60_000, 16),)},
    evaluation=EvaluationConfig(
        every=20_000,
        selection_games=72,
        report_games=96,
        selection_set="valid",
        watched_sets=("valid",),
        stage_sets=("train", "valid", "test"),
        final_sets=("train", "valid", "test"),
    ),
)

PAPER_ALFWORLD = RunConfig(
    preset="paper",
    about=(
        "SIR with state, the best variant there, as SILG trained it (appendix H): V-trace, 1e8 environment steps, "
        "unrolls of 80. SILG also had a step cost 0.02."
    ),
    agent="sir_state",
    phases=as_silg(10),
    evaluation=EvaluationConfig(
        every=2_500_000,
        selection_set="valid",
        watched_sets=("valid",),
        stage_sets=("valid", "test"),
        final_sets=("valid", "test"),
    ),
)
