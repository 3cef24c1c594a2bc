"""Envs that others wrote, and our own, behind the same face."""

import gymnasium
import numpy as np
import pytest

import magrounding as mg
from magrounding.simulators.vectorize import vectorize
from tests.simulators.test_workers import assert_equal, copied


def rock_paper_scissors():
    rps = pytest.importorskip("pettingzoo.classic.rps_v2")
    return rps.parallel_env(max_cycles=5)


def cart_pole():
    return gymnasium.make("CartPole-v1")


def play(make, steps, workers=2):
    rng = np.random.default_rng(0)
    with vectorize(make, 3, workers) as vec:
        alone = vectorize(make, 3)
        assert_equal(vec.reset(seed=4)[0], alone.reset(seed=4)[0])
        for _ in range(steps):
            actions = rng.integers(0, vec.spec.num_actions, (3, vec.num_agents))
            found = copied(vec.step(actions))
            assert_equal(found, copied(alone.step(actions)))
            yield vec, found
        alone.close()


def test_cart_pole():
    ends = 0
    for vec, found in play(cart_pole, 120):
        assert vec.spec.max_cycles == 500
        assert found["observation"].shape == (3, 1, 4)
        ends += found["terminated"].sum()
    assert ends > 5


def test_rock_paper_scissors_of_pettingzoo():
    rock_paper_scissors()
    lengths = []
    for vec, found in play(rock_paper_scissors, 24):
        assert vec.num_agents == 2
        lengths += found["length"][found["done"]].tolist()
    assert lengths == [5] * 12


@pytest.mark.parametrize("id", ["ma_rtfm", "messenger"])
def test_our_own(id):
    documents = set()
    for vec, found in play(lambda: mg.make(id), 30):
        assert vec.spec.words
        assert vec.spec.capabilities <= {"state", "score"}
        documents |= set(found["document"].tolist())
    assert len(documents) > 1
