"""A uniformly random policy fares here as it does on the authors' released programs.

Reference rates were measured on those programs (5 actions, mask ignored). Only the first k games of every row
count: the first games to end would be the short ones.
"""

import numpy as np
import pytest

import magrounding as mg
from tests.full import in_full

# env, task, size, reference episodes, win rate, mean length; all with a limit of 1000 steps.
REFERENCE = [
    ("rtfm", "simple_stationary", 6, 12_000, 0.1235, 19.94),
    ("rtfm", "simple", 6, 20_000, 0.0425, 3.22),
    ("rtfm", "nl", 10, 12_000, 0.0259, 8.34),
    ("rock_paper_scissors", "permutation", 10, 10_000, 0.0743, 13.30),
]
ROWS, GAMES_A_ROW = 4096, in_full(10, 5)


def random_games(env, rows, games_a_row, **options):
    """Wins and lengths [rows * games_a_row] of the first games of every row under a uniformly random policy."""
    vec = mg.make_vec(env, rows, **options)
    vec.reset(seed=20_000)
    rng = np.random.default_rng(0)
    played, wins, lengths = np.zeros(rows, int), [], []
    while (played < games_a_row).any():
        *_, info = vec.step(rng.integers(0, 5, (rows, 1)))
        counted = info["done"] & (played < games_a_row)
        wins.append(info["won"][counted].copy())
        lengths.append(info["length"][counted].copy())
        played += info["done"]
    return np.concatenate(wins), np.concatenate(lengths)


@pytest.mark.parametrize(("env", "task", "size", "episodes", "win", "length"), REFERENCE)
def test_random_policy_matches_the_released_program(env, task, size, episodes, win, length):
    check_random_games(task, win, length, episodes, env, task=task, size=size, max_cycles=1000)


def check_random_games(name, win, length, episodes, env, **options):
    """Win rate and mean length of a random policy are those of so many episodes on the released program."""
    wins, lengths = random_games(env, ROWS, GAMES_A_ROW, **options)
    n = len(wins)
    assert n == ROWS * GAMES_A_ROW >= 20_000
    p, shared = wins.mean(), 1 / n + 1 / episodes
    pooled = (wins.sum() + win * episodes) / (n + episodes)
    z_win = (p - win) / np.sqrt(pooled * (1 - pooled) * shared)
    z_length = (lengths.mean() - length) / (lengths.std() * np.sqrt(shared))
    assert abs(z_win) < 3.5, (p, z_win)
    assert abs(z_length) < 3.5, (lengths.mean(), z_length)
    print(f"{name}: win {p:.4f} (z {z_win:+.2f}), length {lengths.mean():.2f} (z {z_length:+.2f})")
