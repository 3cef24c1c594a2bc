"""Which learning algorithms there are: a name, its options, its learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magrounding.agents.policy import Policy
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig, PPOLearner

AlgorithmConfig = ImpalaConfig | PPOConfig

_CONFIGS: dict[str, type[AlgorithmConfig]] = {"impala": ImpalaConfig, "ppo": PPOConfig}


def make_learner(policy: Policy, config: AlgorithmConfig) -> Learner:
    """The learner that a config belongs to."""
    return PPOLearner(policy, config) if isinstance(config, PPOConfig) else ImpalaLearner(policy, config)


def parse_config(content: Mapping[str, Any]) -> AlgorithmConfig:
    """The config that `dataclasses.asdict` made a mapping of; KeyError or TypeError where it is damaged."""
    return _CONFIGS[content["algorithm"]](**content)
