"""Random games of NetHack, and what comes out of them: `python -m tests.single.nethack_games 50 80` prints a digest."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter

import numpy as np

import magrounding as mg
from magrounding.single.one_agent import AGENT

RECORDED = {"gold": (10, 276), "scout": (81, 301), "score": (26, 323)}
"""Wins and games of a random policy in nle, 80 steps each, counted by another program."""


def random_games(env, seeds, steps=None, chooser=0):
    """All results of games whose actions are drawn, one generator for each seed."""
    for seed in seeds:
        rng = np.random.default_rng([chooser, seed])
        yield env.reset(seed=seed)
        played = 0
        while env.agents and (steps is None or played < steps):
            yield env.step({AGENT: int(rng.integers(env.spec.num_actions))})
            played += 1


def digest(seeds, steps):
    """Of everything that is seen, in games of a fresh env."""
    env, found = mg.make("nethack", characters=True, colours=True, max_cycles=steps), hashlib.sha256()
    for result in random_games(env, range(seeds)):
        for name, array in result[0][AGENT].items():
            found.update(name.encode() + array.tobytes())
        found.update(repr((result[1:-1], result[-1][AGENT]["text"])).encode() if len(result) == 5 else b"reset")
    env.close()
    return found.hexdigest()


def random_wins(games, split="train"):
    """Wins and games of a random policy, by prompt."""
    env, wins, played = mg.make("nethack", split=split), Counter(), Counter()
    for result in random_games(env, range(games)):
        if not env.agents:
            played[env.prompt] += 1
            wins[env.prompt] += result[-1][AGENT]["won"]
    env.close()
    return wins, played


if __name__ == "__main__":
    print(digest(*map(int, sys.argv[1:])))
