"""Recorded games for tests: small ones of RTFM, shown by the oracle, and a source that teaches from them."""

import numpy as np

import magrounding as mg
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.teams.player import Player
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.recording import record
from tests.training.toy_games import ToyGames, ToyPolicy

ARRAYS = ("game", "actions", "labels", "alive", "rewards", "won")


def make_vec(rows, stage="s3", **options):
    return mg.make_vec("ma_rtfm", rows, stage=stage, **{"agents": 2, "max_cycles": 8, **options})


def by_oracle(games=9, rows=4, seed=7, **options):
    vec = make_vec(rows, **options)
    return record(vec, Oracle(vec), games, seed, "oracle")


def source_of(demonstrations, num_envs, unroll, policies=None, spec=None, **options):
    policies = policies or [ToyPolicy()] * demonstrations.header.agents
    players = [Player(policy, spec or ToyGames().spec, num_envs) for policy in policies]
    return DemonstrationSource(demonstrations, players, num_envs, unroll, **options)


def assert_equal(a, b):
    assert a.header == b.header
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for ours, theirs in ((a.observation, b.observation), (a.texts, b.texts)):
        assert ours.keys() == theirs.keys()
        for name, array in ours.items():
            np.testing.assert_array_equal(array, theirs[name])
