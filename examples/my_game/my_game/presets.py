"""Two presets: agent, algorithm, number of steps and of games at once."""

from magrounding.experiment.config import RunConfig
from magrounding.experiment.phase import Phase, Promotion
from magrounding.training.ppo import PPOConfig
from my_game.reinforce import ReinforceConfig

PPO = Phase(PPOConfig(unroll=12, warm_up=1_000, learning_rate=0.01, epochs=1, entropy=0.05), Promotion(60_000), 32)
DEMO = RunConfig("healer", {"*": (PPO,)}, "demo", "PPO, half a minute.")
REINFORCE = RunConfig("healer", {"*": (Phase(ReinforceConfig(), PPO.until, 32),)}, "reinforce", "REINFORCE.")
