"""Two presets: agent, algorithm, number of steps and of games at once."""

from magrounding.experiment.presets import REMAINING_STAGES, Phase, Preset, Promotion
from magrounding.training.ppo import PPOConfig
from my_game.reinforce import ReinforceConfig

END = Promotion(steps=60_000)
PPO = Phase(PPOConfig(unroll=12, warm_up=1_000, learning_rate=0.01, epochs=1, entropy=0.05), END, 32)
DEMO = Preset("demo", "PPO, half a minute.", "healer", {REMAINING_STAGES: (PPO,)})
REINFORCE = Preset("reinforce", "REINFORCE.", "healer", {REMAINING_STAGES: (Phase(ReinforceConfig(), END, 32),)})
