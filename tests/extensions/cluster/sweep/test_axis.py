"""Axes of a sweep: what --over takes, grids, and random points."""

import numpy as np
import pytest

from magrounding.errors import ConfigurationError
from magrounding.extensions.cluster.sweep.axis import Axis, grid, one_by_one, parse_axes, random_points


def test_lists_keep_their_words():
    axes = parse_axes(["learner.entropy=0.003, 0.01", "network.channels=[4,4],[8,8]", "env_options.task=simple"])
    assert [axis.values for axis in axes] == [("0.003", "0.01"), ("[4,4]", "[8,8]"), ("simple",)]
    assert grid(axes)[:2] == [
        {"learner.entropy": "0.003", "network.channels": "[4,4]", "env_options.task": "simple"},
        {"learner.entropy": "0.003", "network.channels": "[8,8]", "env_options.task": "simple"},
    ]
    assert len(grid(axes)) == 4


@pytest.mark.parametrize(
    ("text", "low", "high", "whole", "log"),
    [("a=1e-4..1e-2:log", 1e-4, 1e-2, False, True), ("a=-1..5", -1, 5, True, False), ("a=1..5.0", 1, 5, False, False)],
)
def test_a_range_has_two_ends(text, low, high, whole, log):
    axis = Axis.parse(text)
    assert (axis.low, axis.high, axis.whole, axis.log) == (low, high, whole, log)
    drawn = [axis.draw(np.random.default_rng(k)) for k in range(200)]
    assert all(low <= float(each) <= high for each in drawn)
    assert all(each == str(int(each)) for each in drawn) if whole else len(set(drawn)) == 200
    below = np.mean([float(each) < (np.sqrt(low * high) if log else (low + high) / 2) for each in drawn])
    assert 0.3 < below < 0.7


@pytest.mark.parametrize(
    "text",
    [
        "text",
        "a=1,,2",
        "a=1,1",
        "a=..3",
        "a=2..1",
        "a=0..1:log",
        "a=nan..1",
        "a=1_0..2_0",
        "a=1..99999999999999999999",
        "seeds=0,1",
    ],
)
def test_what_is_no_axis_is_refused(text):
    with pytest.raises(ConfigurationError):
        parse_axes([text])


def test_a_grid_is_counted_before_it_is_made_and_drawn_from_without_it():
    axes = parse_axes([f"{name}={','.join(map(str, range(100)))}" for name in "abcdefgh"])
    with pytest.raises(ConfigurationError):
        grid(axes)
    assert len(random_points(axes, 3)) == 3


def test_random_points_are_the_same_each_time_and_of_lists_distinct():
    axes = parse_axes(["a=1,2,3", "b=x,y"])
    assert random_points(axes, 4) == random_points(axes, 5)[:4]
    assert len({tuple(each.items()) for each in random_points(axes, 6)}) == 6 == len(random_points(axes, 100))
    mixed = parse_axes(["a=1,2,3", "b=0..1"])
    assert len({tuple(each.items()) for each in random_points(mixed, 100)}) == 6 == len(random_points(mixed, 100))
    assert random_points(mixed, 4) == random_points(mixed, 5)[:4]


def test_every_value_is_tried_once():
    found = list(one_by_one(parse_axes(["a=1,2,3", "b=0..1"])))
    assert [tuple(each.values()) for each in found] == [("1", "0"), ("2", "0"), ("3", "0"), ("1", "1")]
