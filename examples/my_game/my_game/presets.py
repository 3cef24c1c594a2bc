"""Two ways to train: by whom, for how many steps, on how many games at once."""

from magrounding.experiment.presets import REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.training.ppo import PPOConfig
from my_game.reinforce import ReinforceConfig

STEPS = 60_000
PPO = PPOConfig(unroll=12, warm_up=1_000, anneal_steps=STEPS, learning_rate=0.01, epochs=1, entropy=0.05)


def _preset(name, learner):
    phase = Phase(learner, Promotion(steps=STEPS), num_envs=32)
    return Preset(name, "Under a minute of one core.", "healer", {REMAINING_STAGES: (phase,)})


BY_PPO = _preset("demo", PPO)
BY_REINFORCE = _preset("reinforce", ReinforceConfig(unroll=12))
