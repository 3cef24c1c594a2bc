"""tianshou's PPO learns to read: `python -m examples.clients.tianshou_ppo`.

One agent of Read to Fight Monsters through tianshou's own `PettingZooEnv`, which finds observation and mask where
`nested` puts them. (Agents of one game take turns there, and only the last is paid for what they did together: several
agents learn better through SuperSuit, see sb3_supersuit.py.) Evaluated on assignments never met, split "eval".
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from pettingzoo.utils import parallel_to_aec
from tianshou.algorithm.modelfree.ppo import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOnPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Batch, Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.env.pettingzoo_env import PettingZooEnv
from tianshou.trainer import OnPolicyTrainerParams
from torch import nn

import magrounding as mg
from magrounding.extensions.clients.nested import nested
from magrounding.extensions.clients.word_reader import WordReader

OPTIONS: dict[str, Any] = {"task": "simple_stationary", "max_cycles": 80}
NUM_ENVS = 64


class Head(nn.Module):
    """Actor and critic for tianshou, on top of one reader: logits of actions, or a value.

    Args:
        reader: reads observations.
        outputs: numbers that come out.
        masked: whether actions that the env masks are ruled out.
    """

    def __init__(self, reader: WordReader, outputs: int, masked: bool) -> None:
        super().__init__()
        self.reader, self.last, self.masked = reader, nn.Linear(reader.width, outputs), masked

    def forward(self, obs: Any, state: Any = None, info: Any = None) -> Any:
        out = self.last(self.reader({name: torch.as_tensor(part) for name, part in obs.obs.items()}))
        if not self.masked:
            return out
        return out.masked_fill(~torch.as_tensor(np.asarray(obs.mask, bool)), -1e9), state


def game(split: str) -> PettingZooEnv:
    """One game as tianshou plays it."""
    in_turns: Any = parallel_to_aec(nested(mg.make("rtfm", split=split, **OPTIONS)))
    return PettingZooEnv(in_turns)


def games(split: str, seed: int) -> DummyVectorEnv:
    """Games side by side, game i with seed + i."""
    envs = DummyVectorEnv([lambda: game(split)] * NUM_ENVS)
    envs.seed(seed)
    return envs


def learner() -> MultiAgentOnPolicyAlgorithm:
    """PPO with a reader, not yet trained; tianshou wants a dispatcher around it, for one agent too."""
    env = game("train")
    reader = WordReader(mg.ENVS["rtfm"].describe(**OPTIONS), env.observation_space["observation"])
    actor = Head(reader, env.action_space.n, masked=True)
    policy = DiscreteActorPolicy(actor=actor, action_space=env.action_space)  # pyright: ignore[reportArgumentType]  duck
    ppo = PPO(
        policy=policy,
        critic=Head(reader, 1, masked=False),
        optim=AdamOptimizerFactory(lr=1e-3),
        gamma=0.98,
        ent_coef=0.01,
        max_grad_norm=1.0,
        max_batchsize=4096,
    )
    return MultiAgentOnPolicyAlgorithm(algorithms=[ppo], env=env)


def win_rate(learnt: MultiAgentOnPolicyAlgorithm | None, rounds: int = 8, seed: int = 10**9) -> float:
    """Share of 64 · `rounds` held-out games that are won; without a learner by random legal actions."""
    envs, rng, won = [game("eval") for _ in range(NUM_ENVS)], np.random.default_rng(seed), 0
    for first in range(seed, seed + NUM_ENVS * rounds, NUM_ENVS):
        seen = [env.reset(seed=first + i)[0] for i, env in enumerate(envs)]
        playing = list(range(NUM_ENVS))
        while playing:
            masks = np.array([seen[i]["mask"] for i in playing])
            actions = (masks * rng.random(masks.shape)).argmax(1)
            if learnt is not None:
                with torch.no_grad():
                    actions = learnt.policy(Batch(obs=[seen[i] for i in playing], info={})).act
            going = []
            for i, action in zip(playing, actions, strict=True):
                seen[i], _, ended, late, info = envs[i].step(int(action))
                won += bool(info.get("won", False))
                going += [] if ended or late else [i]
            playing = going
    return won / (NUM_ENVS * rounds)


def train(learnt: MultiAgentOnPolicyAlgorithm, steps: int, seed: int) -> None:
    """Play and learn for this many steps."""
    buffer = VectorReplayBuffer(NUM_ENVS * 64, NUM_ENVS)
    learnt.run_training(
        OnPolicyTrainerParams(
            training_collector=Collector(learnt, games("train", seed * 1_000_000), buffer),
            max_epochs=1,
            epoch_num_steps=steps,
            collection_step_num_env_steps=NUM_ENVS * 64,
            batch_size=1024,
            update_step_num_repetitions=3,
            verbose=False,
            show_progress=False,
        )
    )


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=160_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    np.random.seed(asked.seed)  # noqa: NPY002  tianshou draws minibatches from it
    learnt, start = learner(), time.process_time()
    train(learnt, asked.steps, asked.seed)
    minutes = (time.process_time() - start) / 60
    found = f"{win_rate(learnt):.3f}, random {win_rate(None):.3f}"
    print(f"seed {asked.seed}, {asked.steps:,} steps, {minutes:.1f} core minutes; wins of 512 games: {found}")


if __name__ == "__main__":
    main()
