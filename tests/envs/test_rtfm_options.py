"""Defaults of the papers, and maps and tables at their limits."""

import tracemalloc

import magrounding as mg
from magrounding.envs.rtfm import splits


def test_a_full_map_is_large_enough():
    vec = mg.make_vec("ma_rtfm", 50, stage="s1", agents=3, size=5)
    vec.reset(seed=0)
    empty = vec.spec.vocabulary["empty"]
    assert not (vec.world.observation["grid"] == empty).any()


def test_the_defaults_are_those_of_the_papers_but_for_the_limit():
    options = mg.make_vec("ma_rtfm", 1).world.game
    assert (options.size, options.max_cycles, options.occupants, options.sight) == (8, 80, 2, None)
    assert (options.death, options.drop_mode, options.chase_range) == ("team", "destroyed", 5)
    assert (options.resample_text, options.shuffle_manual, options.split) == (False, True, "train")
    assert mg.make_vec("rtfm", 1).world.game.size == 6
    assert mg.make_vec("rock_paper_scissors", 1).world.game.size == 10


def test_the_largest_task_is_made_in_little_memory():
    """No list of four million assignments: 300 MB, every table made anew."""
    mg.make_vec("ma_rtfm", 1, stage="s5", agents=3, size=10)
    splits.group_table.cache_clear()
    tracemalloc.start()
    mg.make_vec("ma_rtfm", 1, stage="s5", agents=3, size=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6
