"""Two presets: agent, algorithm, number of steps and of games at once."""

from magrounding.experiment.config import REMAINING_STAGES, RunConfig
from magrounding.experiment.phase import Phase, Promotion
from magrounding.training.ppo import PPOConfig
from my_game.reinforce import ReinforceConfig

END = Promotion(steps=60_000)
PPO = Phase(PPOConfig(unroll=12, warm_up=1_000, learning_rate=0.01, epochs=1, entropy=0.05), END, 32)
DEMO = RunConfig("demo", "PPO, half a minute.", "healer", {REMAINING_STAGES: (PPO,)})
REINFORCE = RunConfig("reinforce", "REINFORCE.", "healer", {REMAINING_STAGES: (Phase(ReinforceConfig(), END, 32),)})
