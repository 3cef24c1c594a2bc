"""Settings of runs that take a second or two, the whole road from the first stage to the report."""

from dataclasses import replace

from magrounding.training.impala import ImpalaConfig
from magrounding.training.presets import Preset, Promotion
from magrounding.training.settings import RunSettings

NETWORK = {
    "channels": (4, 4),
    "embedding": 6,
    "goal_hidden": 3,
    "inventory_hidden": 3,
    "document_hidden": 4,
    "head_width": 6,
}

TINY = Preset(
    name="tiny",
    about="Next to nothing.",
    agent="txt2pi",
    num_envs=6,
    learner=ImpalaConfig(unroll=5, learning_rate=0.01, epsilon=1e-3, anneal_steps=600),
    promotions={"s1": Promotion(steps=240), "*": Promotion(steps=180)},
    env_options={"max_cycles": 8},
    policy_options=NETWORK,
    evaluate_every=90,
    selection_games=6,
    report_games=8,
    log_every=2,
    save_every=0.0,
)


def tiny_settings(*, stages=("s1", "s3"), seeds=(0,), agents=2, **changes) -> RunSettings:
    return RunSettings("ma_rtfm", "txt2pi", agents, replace(TINY, **changes), stages, seeds)
