"""BenchMARL 1.5 learns two agents of multi-agent RTFM, stage S1, by IPPO.

python -m examples.clients.benchmarl_ippo
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import torch
from benchmarl.algorithms import IppoConfig
from benchmarl.experiment import Callback, Experiment, ExperimentConfig
from benchmarl.models.common import Model, ModelConfig
from tensordict import TensorDictBase
from torch import nn
from torchrl.envs.utils import ExplorationType, set_exploration_type

import magrounding as mg
from magrounding.extensions.clients.benchmarl import GroundedTask
from magrounding.extensions.clients.torchrl import BatchedEnv
from magrounding.extensions.clients.word_reader import WordReader

OPTIONS = {"stage": "s1", "agents": 2, "max_cycles": 80}
GAMES, STEPS = 64, 32


class ReaderModel(Model):
    """The reader of the other examples as a model of BenchMARL, one for all agents."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        env = BatchedEnv(mg.make_vec("ma_rtfm", 1, **OPTIONS))
        reader = WordReader(env.vec.spec, env.layout, things=8)  # BenchMARL learns within `torch.vmap`
        self.network = nn.Sequential(reader, nn.Linear(reader.width, self.output_leaf_spec.shape[-1]))

    def _forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        return tensordict.set(self.out_key, self.network(tensordict[self.in_key]))


@dataclass
class ReaderConfig(ModelConfig):
    """Its options: none."""

    @staticmethod
    def associated_class() -> type[Model]:
        return ReaderModel


def evaluate(policy: Any, games: int = 500, seed: int = 10**6) -> float:
    """The share won of the first games of `games` seeds, actions being drawn; legal ones at random without a policy."""
    env = BatchedEnv(mg.make_vec("ma_rtfm", games, **OPTIONS), seed=seed)
    with torch.no_grad(), set_exploration_type(ExplorationType.RANDOM):
        played = env.rollout(OPTIONS["max_cycles"], policy, break_when_any_done=False)
    first = played["next", "done"].squeeze(-1).long().argmax(1)
    return played["next", "agent", "info", "won"][torch.arange(games), first, 0].mean().item()


class Watch(Callback):
    """Pays all agents the team's mean; plays games of its own at the begin, in the middle and at the end.

    Args:
        iterations: how many there are.
    """

    def __init__(self, iterations: int) -> None:
        super().__init__()
        self.iterations, self.begin = iterations, process_time()

    def on_setup(self) -> None:
        self.say("random play", evaluate(None))
        self.say("the network as it begins", evaluate(self.experiment.policy))

    def on_batch_collected(self, batch: TensorDictBase) -> None:
        reward = batch["next", "agent", "reward"]
        reward[:] = reward.mean(-2, keepdim=True)  # the team's: else it pays to let the other one take the risks
        number = self.experiment.n_iters_performed
        if number % 10 == 0 and number:
            self.say(f"in training, {number * GAMES * STEPS:,} steps", GroundedTask.log_info(batch).get("win_rate", 0))

    def on_train_end(self, training_td: TensorDictBase, group: str) -> None:
        number = self.experiment.n_iters_performed + 1
        if number in (self.iterations // 2, self.iterations):
            self.say(f"after {number * GAMES * STEPS:,} steps", evaluate(self.experiment.policy))

    def say(self, when: str, won: float) -> None:
        """One line."""
        print(f"{(process_time() - self.begin) / 60:5.1f} min  {when}: {won:6.1%} won")


def settings(iterations: int, folder: Path) -> ExperimentConfig:
    """BenchMARL's defaults, but for the sizes, the rate and what it writes."""
    changes: Mapping[str, Any] = {
        "gamma": 0.99,
        "lr": 2.5e-3,
        "clip_grad_val": 0.5,
        "prefer_continuous_actions": False,
        "max_n_iters": iterations,
        "on_policy_collected_frames_per_batch": GAMES * STEPS,
        "on_policy_n_envs_per_worker": GAMES,
        "on_policy_n_minibatch_iters": 4,
        "on_policy_minibatch_size": 256,
        "evaluation": False,
        "render": False,
        "loggers": [],
        "create_json": False,
        "save_folder": str(folder),
    }
    config = ExperimentConfig.get_from_yaml()
    for name, value in changes.items():
        setattr(config, name, value)
    return config


def main() -> None:
    """Train; what BenchMARL writes goes into a folder that is removed in the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    algorithm = IppoConfig.get_from_yaml()
    algorithm.entropy_coef, algorithm.lmbda = 0.005, 0.95
    with TemporaryDirectory() as folder:
        experiment = Experiment(
            task=GroundedTask("ma_rtfm", OPTIONS),
            algorithm_config=algorithm,
            model_config=ReaderConfig(),
            critic_model_config=ReaderConfig(),
            seed=arguments.seed,
            config=settings(arguments.iterations, Path(folder)),
            callbacks=[Watch(arguments.iterations)],
        )
        experiment.run()


if __name__ == "__main__":
    main()
