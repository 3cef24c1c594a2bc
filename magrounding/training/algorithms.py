"""Which learning algorithms there are: a name, its options, its learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magrounding.agents.policy import Policy
from magrounding.training.imitation import ImitationConfig, ImitationLearner
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig, PPOLearner

AlgorithmConfig = ImpalaConfig | PPOConfig | ImitationConfig

_ALGORITHMS: dict[str, tuple[type[AlgorithmConfig], Callable[[Policy, Any], Learner]]] = {
    "impala": (ImpalaConfig, ImpalaLearner),
    "ppo": (PPOConfig, PPOLearner),
    "imitation": (ImitationConfig, ImitationLearner),
}


def make_learner(policy: Policy, config: AlgorithmConfig) -> Learner:
    """The learner that a config belongs to."""
    return _ALGORITHMS[config.algorithm][1](policy, config)


def parse_config(content: Mapping[str, Any]) -> AlgorithmConfig:
    """The config that `dataclasses.asdict` made a mapping of; KeyError or TypeError where it is damaged."""
    return _ALGORITHMS[content["algorithm"]][0](**content)
