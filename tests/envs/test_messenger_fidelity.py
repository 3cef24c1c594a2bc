"""A uniformly random policy fares here as it does on the authors' released program.

Reference rates were measured on that program (5 actions, mask ignored). Only the first k games of every row count: the
first games to end would be the short ones.
"""

import pytest

from tests.envs.test_rtfm_fidelity import check_random_games

# stage, split, limit, reference episodes, win rate, mean length
REFERENCE = [
    ("s1", "train", 4, 20_000, 0.0789, 3.71),
    ("s2", "train", 64, 4_000, 0.0265, 31.65),
    ("s3", "train", 128, 3_000, 0.0130, 24.08),
]


@pytest.mark.parametrize(("stage", "split", "limit", "episodes", "win", "length"), REFERENCE)
def test_random_policy_matches_the_released_program(stage, split, limit, episodes, win, length):
    check_random_games(stage, win, length, episodes, "messenger", stage=stage, split=split, max_cycles=limit)
