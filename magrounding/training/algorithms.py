"""Which learning algorithms there are: a name, its options, its learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from magrounding.agents.policy import Policy
from magrounding.training.imitation import ImitationConfig, ImitationLearner
from magrounding.training.impala import ImpalaConfig, ImpalaLearner
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig, PPOLearner
from magrounding.training.qmix import QmixConfig, make_qmix_learner
from magrounding.vector import VectorEnv

AlgorithmConfig = ImpalaConfig | PPOConfig | ImitationConfig | QmixConfig

_ALGORITHMS: dict[str, tuple[type[AlgorithmConfig], Callable[[Policy, Any, VectorEnv, int], Learner]]] = {
    "impala": (ImpalaConfig, lambda policy, config, *_: ImpalaLearner(policy, config)),
    "ppo": (PPOConfig, lambda policy, config, *_: PPOLearner(policy, config)),
    "imitation": (ImitationConfig, lambda policy, config, *_: ImitationLearner(policy, config)),
    "qmix": (QmixConfig, make_qmix_learner),
}


def make_learner(policy: Policy, config: AlgorithmConfig, vec: VectorEnv, seed: int) -> Learner:
    """The learner that a config belongs to, for the games of `vec`; `seed` is that of the policy's weights."""
    return _ALGORITHMS[config.algorithm][1](policy, config, vec, seed)


def parse_config(content: Mapping[str, Any]) -> AlgorithmConfig:
    """The config that `dataclasses.asdict` made a mapping of; KeyError or TypeError where it is damaged."""
    return _ALGORITHMS[content["algorithm"]][0](**content)
