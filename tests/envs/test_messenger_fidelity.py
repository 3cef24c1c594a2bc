"""A uniformly random policy fares here as it does on the authors' released program.

Reference rates were measured on that program (5 actions, mask ignored). Only the first k games of every row count: the
first games to end would be the short ones.
"""

import numpy as np
import pytest

from tests.envs.test_rtfm_fidelity import random_games

# stage, split, limit, reference episodes, win rate, mean length
REFERENCE = [
    ("s1", "train", 4, 20_000, 0.0789, 3.71),
    ("s2", "train", 64, 4_000, 0.0265, 31.65),
    ("s3", "train", 128, 3_000, 0.0130, 24.08),
]
ROWS, GAMES_A_ROW = 4096, 10


@pytest.mark.parametrize(("stage", "split", "limit", "episodes", "win", "length"), REFERENCE)
def test_random_policy_matches_the_released_program(stage, split, limit, episodes, win, length):
    wins, lengths = random_games("messenger", ROWS, GAMES_A_ROW, stage=stage, split=split, max_cycles=limit)
    n = len(wins)
    assert n == ROWS * GAMES_A_ROW >= 20_000
    p, shared = wins.mean(), 1 / n + 1 / episodes
    pooled = (wins.sum() + win * episodes) / (n + episodes)
    z_win = (p - win) / np.sqrt(pooled * (1 - pooled) * shared)
    z_length = (lengths.mean() - length) / (lengths.std() * np.sqrt(shared))
    print(f"{stage}: win {p:.4f} (z {z_win:+.2f}), length {lengths.mean():.2f} (z {z_length:+.2f})")
    assert abs(z_win) < 3.5, (p, z_win)
    assert abs(z_length) < 3.5, (lengths.mean(), z_length)
