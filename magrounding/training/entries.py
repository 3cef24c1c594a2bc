"""The learning algorithms of this package."""

from magrounding.registry import AlgorithmEntry

ALGORITHMS = (
    AlgorithmEntry("impala", "magrounding.training.impala:ImpalaConfig"),
    AlgorithmEntry("ppo", "magrounding.training.ppo:PPOConfig"),
    AlgorithmEntry("imitation", "magrounding.training.imitation:ImitationConfig"),
    AlgorithmEntry("qmix", "magrounding.training.qmix:QmixConfig", own_agents=True),
)
