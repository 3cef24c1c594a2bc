"""stable-baselines3's PPO, through SuperSuit, for two agents: `python -m examples.clients.sb3_supersuit`.

One network plays both agents of multi-agent RTFM, stage S1. SB3 takes each agent for an env of its own, so all of them
have to stay to the end of a game: `--death individual` pads those that are out. Evaluated on split "eval".
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import supersuit
import torch
from stable_baselines3 import PPO

import magrounding as mg
from magrounding.extensions.clients.sb3 import WordExtractor
from magrounding.extensions.clients.tensors import for_tensors

NUM_GAMES = 32


def game(split: str, death: str) -> Any:
    """One game of two agents, both of which stay to its end."""
    env = mg.make("ma_rtfm", agents=2, stage="s1", max_cycles=80, split=split, death=death)
    return for_tensors(env, mask="observation", dead="padded")


def learner(seed: int, death: str = "team") -> PPO:
    """PPO with a reader, not yet trained."""
    env = game("train", death)
    rows: Any = supersuit.pettingzoo_env_to_vec_env_v1(env)
    rows = supersuit.concat_vec_envs_v1(rows, NUM_GAMES, base_class="stable_baselines3")
    rows.venv.reset(seed=seed * 1_000_000)  # SuperSuit's face for SB3 cannot be seeded; its games go on from here
    return PPO(
        "MultiInputPolicy",
        rows,
        learning_rate=lambda left: 1e-3 * max(left, 0.05),
        n_steps=64,
        batch_size=1024,
        n_epochs=3,
        gamma=0.98,
        ent_coef=0.01,
        max_grad_norm=1.0,
        policy_kwargs={
            "features_extractor_class": WordExtractor,
            "features_extractor_kwargs": {"spec": env.spec},
            "net_arch": [],
        },
    )


def win_rate(model: PPO | None, rounds: int = 8, death: str = "team", seed: int = 10**9) -> float:
    """Share of 64 · `rounds` held-out games that are won by sampled actions; without a model by random ones."""
    envs, rng, won = [game("eval", death) for _ in range(64)], np.random.default_rng(seed), 0
    for start in range(seed, seed + 64 * rounds, 64):
        seen = [env.reset(seed=start + i)[0] for i, env in enumerate(envs)]
        while playing := [i for i, env in enumerate(envs) if env.agents]:
            views = [seen[i][agent] for i in playing for agent in envs[i].possible_agents]
            actions = rng.integers(0, 5, len(views))
            if model is not None:
                rows = {key: np.stack([view[key] for view in views]) for key in views[0]}
                actions, _ = model.predict(rows, deterministic=False)
            for i, pair in zip(playing, actions.reshape(-1, 2), strict=True):
                seen[i], _, _, _, infos = envs[i].step(dict(zip(envs[i].agents, pair, strict=True)))
                won += bool(infos["agent_0"]["won"])
    return won / (64 * rounds)


def main() -> None:
    """Train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300_000, help="steps of agents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--death", choices=("team", "individual"), default="team")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    np.random.seed(asked.seed)  # noqa: NPY002 (SB3 shuffles minibatches with it)
    model, start = learner(asked.seed, asked.death), time.process_time()
    model.learn(asked.steps)
    minutes = (time.process_time() - start) / 60
    found = f"{win_rate(model, death=asked.death):.3f}, random {win_rate(None, death=asked.death):.3f}"
    print(f"seed {asked.seed}, {model.num_timesteps:,} steps, {minutes:.1f} core minutes; wins of 512 games: {found}")


if __name__ == "__main__":
    main()
