"""Two ways to play: one game through PettingZoo, printed, and a thousand games at once through the vector env.

Run it from the repository: python -m examples.random_games
"""

from __future__ import annotations

import numpy as np

import magrounding as mg


def legal_actions(action_mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw uniformly among the legal actions: mask [..., A] → actions [...]."""
    return np.where(action_mask, rng.random(action_mask.shape), -1.0).argmax(-1)


def one_game(seed: int = 0) -> list[str]:
    """Play one game of two agents at random and return its pictures, the document on the first."""
    env = mg.make("ma_rtfm", stage="s5", agents=2, max_cycles=50, render_mode="ansi")
    rng = np.random.default_rng(seed)
    observations, infos = env.reset(seed=seed)
    text = infos["agent_0"]["text"]
    pages = ["\n".join([*text["manual"], "", text["goal"], "", str(env.render())])]
    while env.agents:
        actions = {agent: int(legal_actions(observations[agent]["action_mask"], rng)) for agent in env.agents}
        observations, rewards, _, _, infos = env.step(actions)
        pages.append(f"{env.render()}\nrewards {rewards}")
    won = next(iter(infos.values()))["won"]
    return [*pages, "won" if won else "lost"]


def many_games(num_envs: int = 1024, steps: int = 200, seed: int = 0) -> tuple[int, float]:
    """Play `num_envs` games side by side at random; how many ended, and the share of them that was won."""
    vec = mg.make_vec("ma_rtfm", num_envs, stage="s5", agents=2, max_cycles=80)
    rng = np.random.default_rng(seed)
    observation, _ = vec.reset(seed=seed)
    ended = won = 0
    for _ in range(steps):
        observation, _rewards, _terminated, _truncated, info = vec.step(legal_actions(observation["action_mask"], rng))
        ended += int(info["done"].sum())
        won += int(info["won"][info["done"]].sum())
    return ended, won / max(ended, 1)


def main() -> None:
    """Play both and print what happened."""
    print("\n\n".join(one_game()))
    ended, rate = many_games()
    print(f"\n{ended} games at random, {rate:.1%} won")


if __name__ == "__main__":
    main()
