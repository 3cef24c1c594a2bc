"""sb3-contrib's MaskablePPO learns to read: `python -m examples.clients.maskable_ppo`.

One agent of Read to Fight Monsters, 300,000 steps. It is evaluated on assignments that it has never met (split "eval").
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks
from stable_baselines3.common.vec_env import DummyVecEnv

import magrounding as mg
from magrounding.extensions.clients.sb3 import WordExtractor

OPTIONS: dict[str, Any] = {"task": "simple_stationary", "max_cycles": 80}
NUM_ENVS = 64


def games(split: str, seed: int, num_envs: int = NUM_ENVS) -> DummyVecEnv:
    """Games side by side, game i with seed + i."""
    env = DummyVecEnv([partial(gymnasium.make, "magrounding/rtfm-v1", split=split, **OPTIONS)] * num_envs)
    env.seed(seed)
    return env


def learner(seed: int) -> MaskablePPO:
    """PPO with a reader, not yet trained."""
    return MaskablePPO(
        "MultiInputPolicy",
        games("train", seed * 1_000_000),
        seed=seed,
        learning_rate=lambda left: 1e-3 * max(left, 0.05),
        n_steps=64,
        batch_size=1024,
        n_epochs=3,
        gamma=0.98,
        ent_coef=0.01,
        max_grad_norm=1.0,
        policy_kwargs={
            "features_extractor_class": WordExtractor,
            "features_extractor_kwargs": {"spec": mg.ENVS["rtfm"].describe(**OPTIONS)},
            "net_arch": [],
        },
    )


def win_rate(model: MaskablePPO | None, rounds: int = 8, seed: int = 10**9, greedy: bool = False) -> float:
    """Share of 64 · `rounds` held-out games that are won; without a model by random legal actions."""
    env, rng = games("eval", seed), np.random.default_rng(seed)
    seen, ended, won = env.reset(), np.zeros(NUM_ENVS, int), 0
    while (ended < rounds).any():
        masks = get_action_masks(env)
        if model is None:
            actions = (masks * rng.random(masks.shape)).argmax(1)
        else:
            actions, _ = model.predict(seen, action_masks=masks, deterministic=greedy)  # pyright: ignore[reportArgumentType]
        seen, _, done, infos = env.step(actions)
        won += sum(bool(infos[i]["won"]) for i in np.flatnonzero(done & (ended < rounds)))
        ended += done
    return won / (NUM_ENVS * rounds)


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model, start = learner(asked.seed), time.process_time()
    model.learn(asked.steps)
    minutes = (time.process_time() - start) / 60
    found = f"sampled {win_rate(model):.3f}, greedy {win_rate(model, greedy=True):.3f}, random {win_rate(None):.3f}"
    print(f"seed {asked.seed}, {model.num_timesteps:,} steps, {minutes:.1f} core minutes; wins of 512 games: {found}")


if __name__ == "__main__":
    main()
