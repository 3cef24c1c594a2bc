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
from magrounding.single.alfworld import ALFWorld
from magrounding.single.babyai import BabyAI
from magrounding.single.nethack import NetHack
from magrounding.single.scienceworld import ScienceWorld
from magrounding.single.touchdown import Touchdown
from magrounding.training.ppo import PPOConfig
from tests.envs.people_corpus import small_corpus, write_corpus


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


@pytest.mark.parametrize("given", [None, True, 3, 3.0, "3", b"3", object(), ...])
def test_what_is_plain_or_stands_for_nothing_stays(given):
    assert plain(given) is given


def test_a_list_of_numbers_is_no_number():
    given = np.array([3])
    assert plain(given) is given


OPTIONS = [
    ("rtfm", {"size": np.int64(8), "sight": np.float32(3), "shuffle_manual": np.False_, "occupants": np.int64(1)}),
    ("ma_rtfm", {"agents": Three(), "max_cycles": np.uint8(9), "chase_range": np.int32(2)}),
    ("rock_paper_scissors", {"size": Size.SMALL}),
    ("messenger", {"max_cycles": np.int16(9), "game_id": np.True_}),
    ("ma_messenger", {"agents": np.int64(2)}),
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


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (ALFWorld, {"max_cycles": np.int64(9), "games": Path("games")}),
        (BabyAI, {"max_cycles": np.int64(9), "fast_view": np.False_}),
        (NetHack, {"max_cycles": np.int64(9), "crop": np.int64(9), "colours": np.True_}),
        (ScienceWorld, {"max_choices": np.int64(9), "heap": np.int64(300), "fast_actions": np.True_}),
        (Touchdown, {"max_cycles": np.int64(9), "turned": np.True_, "patch": np.int8(4)}),
    ],
)
def test_in_options_of_simulators(config, options):
    same = plain(options)
    assert config(**options) == config(**same)
    assert json.loads(json.dumps(config(**options).as_dict())).items() >= same.items()
    for name, value in options.items():
        wrong = [True, 3.5, "3", None] if isinstance(value, np.integer) else [1, np.int64(1), "yes"]
        for each in wrong:
            if isinstance(value, np.integer | np.bool_) and not (each is None and name == "max_cycles"):
                with pytest.raises(ConfigurationError):
                    config(**{name: each})


def test_a_folder_is_a_path_of_any_kind(tmp_path, small_corpus_folder):
    assert mg.make("messenger", corpus=small_corpus_folder).options == {"corpus": str(small_corpus_folder)}


@pytest.fixture
def small_corpus_folder(tmp_path):
    return Path(write_corpus(tmp_path / "corpus", small_corpus()))


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
