"""Wrong options get one clear sentence; right ones do what their names say."""

import tracemalloc

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm import splits
from magrounding.errors import ConfigurationError

WRONG = [
    ("ma_rtfm", {"stage": "s9"}, "stage"),
    ("ma_rtfm", {"stage": None}, "stage"),
    ("ma_rtfm", {"stage": ["s1"]}, "stage"),
    ("rtfm", {"task": "hard"}, "task"),
    ("rock_paper_scissors", {"task": "simple"}, "task"),
    ("rtfm", {"split": "test"}, "split"),
    ("rock_paper_scissors", {"split": "eval_new"}, "split"),
    ("rtfm", {"stage": "s1"}, "option"),
    ("rtfm", {"agents": 2}, "option"),
    ("rtfm", {"colour": "red"}, "option"),
    ("ma_rtfm", {"agents": 0}, "agents"),
    ("ma_rtfm", {"agents": -1}, "agents"),
    ("ma_rtfm", {"agents": 2.0}, "agents"),
    ("ma_rtfm", {"agents": True}, "agents"),
    ("ma_rtfm", {"agents": "two"}, "agents"),
    ("rtfm", {"size": 3}, "size"),
    ("rtfm", {"size": 8.5}, "size"),
    ("rtfm", {"size": 4}, "room"),
    ("ma_rtfm", {"agents": 3, "stage": "s2", "size": 5}, "room"),
    ("ma_rtfm", {"agents": 10_000}, "room"),
    ("rtfm", {"max_cycles": 0}, "max_cycles"),
    ("rtfm", {"max_cycles": None}, "max_cycles"),
    ("rtfm", {"sight": -1}, "sight"),
    ("rtfm", {"sight": "far"}, "sight"),
    ("rtfm", {"sight": float("nan")}, "sight"),
    ("rtfm", {"chase_range": -0.5}, "chase_range"),
    ("rtfm", {"chase_range": "any"}, "chase_range"),
    ("rtfm", {"occupants": 3}, "occupants"),
    ("rtfm", {"occupants": 0}, "occupants"),
    ("rtfm", {"occupants": 1.0}, "occupants"),
    ("rtfm", {"drop_mode": "eaten"}, "drop_mode"),
    ("ma_rtfm", {"death": "slow"}, "death"),
    ("rtfm", {"resample_text": "yes"}, "resample_text"),
    ("rtfm", {"shuffle_manual": None}, "shuffle_manual"),
    ("rtfm", {"layout": "verse"}, "layout"),
    ("ma_rtfm", {"layout": 3}, "layout"),
    ("rock_paper_scissors", {"layout": "stream"}, "option"),
    ("rtfm", {"num_threads": 0}, "num_threads"),
]


@pytest.mark.parametrize(("env", "options", "word"), WRONG, ids=str)
def test_wrong_options_get_one_sentence_that_names_them(env, options, word):
    with pytest.raises(ConfigurationError, match=word) as error:
        mg.make_vec(env, 2, **options)
    assert "\n" not in str(error.value)
    if "num_threads" not in options:
        with pytest.raises(ConfigurationError, match=word):
            mg.make(env, **options)


@pytest.mark.parametrize("num_envs", [0, -3, 1.5, "4", None])
def test_a_batch_has_at_least_one_game(num_envs):
    with pytest.raises(ConfigurationError, match="num_envs"):
        mg.make_vec("rtfm", num_envs)


def test_unknown_ids_are_answered_with_the_known_ones():
    with pytest.raises(ConfigurationError, match="ma_rtfm"):
        mg.make("chess")


def test_a_choice_lists_what_there_is():
    with pytest.raises(ConfigurationError, match=r"s1, s2, s3, s4, s5, s6"):
        mg.make("ma_rtfm", stage="s7")


def test_a_full_map_is_large_enough():
    vec = mg.make_vec("ma_rtfm", 50, stage="s1", agents=3, size=5)
    vec.reset(seed=0)
    empty = vec.spec.vocabulary["empty"]
    assert not (vec.world.observation["grid"] == empty).any()


def test_the_defaults_are_those_of_the_papers():
    options = mg.make_vec("ma_rtfm", 1).world.game
    assert (options.size, options.max_cycles, options.occupants, options.sight) == (8, 1000, 2, None)
    assert (options.death, options.drop_mode, options.chase_range) == ("team", "destroyed", 5)
    assert (options.resample_text, options.shuffle_manual, options.split) == (False, True, "train")
    assert mg.make_vec("rtfm", 1).world.game.size == 6
    assert mg.make_vec("rock_paper_scissors", 1).world.game.size == 10


def test_time_outs_come_with_the_limit():
    for limit in (1, 7):
        vec = mg.make_vec("rtfm", 20, task="simple_stationary", max_cycles=limit)
        vec.reset(seed=0)
        for step in range(1, limit + 1):
            *_, truncated, info = vec.step(np.zeros((20, 1), np.int64))
            assert truncated.all() == info["done"].all() == (step == limit)
        assert (info["length"] == limit).all()
        assert not info["won"].any()
        assert info["return"][0, 0] == pytest.approx(-1 - 0.02 * (limit - 1))


def test_the_largest_task_is_made_in_little_memory():
    """No list of four million assignments: 300 MB, every table made anew."""
    mg.make_vec("ma_rtfm", 1, stage="s5", agents=3, size=10)
    splits.group_table.cache_clear()
    tracemalloc.start()
    mg.make_vec("ma_rtfm", 1, stage="s5", agents=3, size=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6
