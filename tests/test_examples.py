"""The examples run, and say what their texts promise."""

import numpy as np
import pytest

from examples import picture, random_games
from examples.my_game.my_game.env import MyGame
from magrounding.envs.checks import check_parallel_env


@pytest.mark.parametrize("options", [{}, {"agents": 1}, {"agents": 3, "split": "eval"}], ids=str)
def test_the_example_of_a_game_keeps_every_promise(options):
    check_parallel_env(lambda: MyGame(**options))


def test_the_picture_is_of_a_lively_moment():
    shown = picture.find_moment(holders=1, after=2)
    assert shown.dtype == np.uint8
    assert shown.ndim == 3
    assert len(np.unique(shown)) > 20


def test_one_game_shows_the_text_every_step_and_how_it_ended():
    pages = random_games.one_game(seed=3)
    assert len(pages) >= 3
    assert len(pages[0].splitlines()) > 8  # seven statements, the goal, the map
    assert all("rewards" in page for page in pages[1:-1])
    assert pages[-1] in ("won", "lost")
    assert pages == random_games.one_game(seed=3)


def test_many_games_end_and_a_few_are_won():
    ended, rate = random_games.many_games(num_envs=64, steps=100)
    assert ended > 64
    assert 0 < rate < 0.5
