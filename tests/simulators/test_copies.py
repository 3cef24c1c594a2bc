"""Copies and pickles of vector envs play on as the original would, each in games of its own; or a sentence says no."""

import copy
import pickle
import threading

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from magrounding.envs.gymnasium_vector import GymnasiumVectorEnv
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Counting, Guess, Walk
from tests.simulators.test_workers import assert_equal, copied

WAYS = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}


def cart_pole():
    return gymnasium.make("CartPole-v1")


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def twin_of(request):
    return request.param


@pytest.mark.parametrize("make", [Walk, Guess, cart_pole])
def test_a_copy_goes_on_alike(make, twin_of):
    vec, rng = vectorize(make, 3, copy=make is Walk), np.random.default_rng(0)
    vec.reset(seed=6)
    for _ in range(30):
        vec.step(rng.integers(0, 2, (3, vec.num_agents)))
    twin = twin_of(vec)
    for _ in range(60):  # through ends
        actions = rng.integers(0, 2, (3, vec.num_agents))
        ours = copied(vec.step(actions))
        assert_equal(copied(twin.step(actions)), ours)
    if make is Walk:
        np.testing.assert_array_equal(twin.state(), vec.state())
        np.testing.assert_array_equal(twin.best_actions(), vec.best_actions())
    assert_equal(twin.reset()[0], vec.reset()[0])


def test_copies_before_a_reset_and_after_the_end(twin_of):
    fresh = vectorize(Walk, 2)
    twin = twin_of(fresh)
    assert_equal(twin.reset(seed=1)[0], fresh.reset(seed=1)[0])
    fresh.close()
    twin = twin_of(fresh)
    with pytest.raises(CallOrderError):
        twin.step(np.zeros((2, 3), int))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_face_of_gymnasium_goes_on_alike(mode, twin_of):
    env = GymnasiumVectorEnv(vectorize(Guess, 3), mode)
    env.reset(seed=2)
    env.action_space.seed(0)
    for _ in range(10):
        env.step(env.action_space.sample())
    twin = twin_of(env)
    for _ in range(30):
        actions = env.action_space.sample()
        ours, theirs = env.step(actions), twin.step(actions)
        np.testing.assert_equal(theirs[:4], ours[:4])
        assert theirs[4].keys() == ours[4].keys()
    np.testing.assert_equal(twin.reset(), env.reset())


class Locked(Guess):
    """Holds what no copy can be made of."""

    def __init__(self):
        self.lock = threading.Lock()


@pytest.mark.parametrize("face", [lambda vec: vec, GymnasiumVectorEnv])
@pytest.mark.parametrize(("make", "workers"), [(Locked, 0), (Guess, 1)])
def test_what_cannot_be_copied_says_so(make, workers, face, twin_of):
    vec = vectorize(make, 2, workers)
    env = face(vec)
    with pytest.raises(ConfigurationError):
        twin_of(env)
    env.reset(seed=0)  # and plays on
    vec.close()


def test_envs_of_lambdas_and_local_classes_travel(twin_of):
    class Mine(Counting):
        def __init__(self, rule):
            self.rule = rule

        def step(self, action):
            return super().step(self.rule(action))

    vec = vectorize(lambda: Mine(lambda action: 1 - action), 1)
    vec.reset(seed=0)
    vec.step([[1]])
    assert (
        twin_of(vec).step([[1]])[0]["observation"].tolist() == vec.step([[1]])[0]["observation"].tolist() == [[[0, 2]]]
    )
