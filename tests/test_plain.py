"""Whatever is an integer, a number, a switch or a path to Python is one to us; nothing else is."""

import json
from enum import IntEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from magrounding.agents.relread.network import RelreadConfig
from magrounding.errors import ConfigurationError
from magrounding.experiment.config import make_config
from magrounding.experiment.phase import Promotion
from magrounding.plain import plain
from magrounding.training.ppo import PPOConfig


class Size(IntEnum):
    SMALL = 8


class Three:
    def __index__(self):
        return 3


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (np.int8(3), 3),
        (np.uint64(3), 3),
        (np.array(3), 3),
        (Three(), 3),
        (Size.SMALL, 8),
        (np.True_, True),
        (np.False_, False),
        (np.float32(0.5), 0.5),
        (np.float64(3), 3.0),
        (Fraction(1, 2), 0.5),
        (Path("a/b"), "a/b"),
        ((np.int64(1), [np.True_]), (1, [True])),
        ({"a": np.int64(1)}, {"a": 1}),
    ],
)
def test_what_stands_for_a_plain_value(given, meant):
    found = plain(given)
    assert (found, type(found)) == (meant, type(meant))
    assert json.loads(json.dumps(found)) is not None


OPTIONS = [
    ("rtfm", {"size": np.int64(8), "sight": np.float32(3), "shuffle_manual": np.False_, "occupants": np.int64(1)}),
    ("ma_rtfm", {"agents": Three(), "max_cycles": np.uint8(9), "chase_range": np.int32(2)}),
    ("rock_paper_scissors", {"size": Size.SMALL}),
    ("touchdown", {"patch": np.int64(2), "manual_stop": np.True_}),
]


@pytest.mark.parametrize(("env", "options"), OPTIONS, ids=[env for env, _ in OPTIONS])
def test_in_options_of_worlds(env, options):
    same = plain(options)
    given, usual = mg.make(env, **options), mg.make(env, **same)
    assert given.options == usual.options
    assert json.loads(json.dumps(given.options)) == usual.options
    vec = mg.make_vec(env, np.int64(2), copy=np.True_, **options)
    assert json.loads(json.dumps(vec.options)) == same
    seen = [each.reset(seed=np.array(5))[0] for each in (given, usual)]
    assert str(seen[0]) == str(seen[1])


def test_in_settings_of_runs():
    options = {"preset": "quick", "stages": ("s1",)}
    settings = make_config("ma_rtfm", agents=np.int64(3), seeds=(np.int64(4),), **options)
    assert settings.as_dict() == make_config("ma_rtfm", agents=3, seeds=(4,), **options).as_dict()
    json.dumps(settings.as_dict())
    assert json.dumps(PPOConfig(epochs=np.int64(2), weights={"a": np.float32(0.5)}).as_dict())
    assert Promotion(steps=np.int64(5)) == Promotion(steps=5)
    assert type(RelreadConfig(hidden=np.int64(8)).hidden) is int
    with pytest.raises(ConfigurationError):
        RelreadConfig(hidden=8.0)
