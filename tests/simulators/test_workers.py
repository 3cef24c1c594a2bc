"""Workers: the same arrays as in one process, in halves too; and how games are shared."""

import numpy as np
import pytest

from magrounding.errors import CallOrderError, ConfigurationError, MissingExtra
from magrounding.simulators.faults import SimulatorError
from magrounding.simulators.vectorize import vectorize
from tests.simulators.games import Guess, Walk


def copied(result):
    """(observation, rewards, terminated, truncated, info) as a flat dict of copies."""
    observation, rewards, terminated, truncated, info = result
    arrays = {**observation, "rewards": rewards, "terminated": terminated, "truncated": truncated}
    arrays |= {key: info[key] for key in info if key not in ("final_observation", "fault")}
    arrays |= {f"final {key}": array for key, array in info.final_observation.items()}
    return {key: array.copy() for key, array in arrays.items()}


def assert_equal(a, b):
    assert a.keys() == b.keys()
    for key, array in a.items():
        assert array.dtype == b[key].dtype, key
        np.testing.assert_array_equal(array, b[key], key)


def played_alike(vec, other):
    """Play the same steps of `Walk` in both, from three seeds, and check that they are equal; yield the other's."""
    rng = np.random.default_rng(0)
    assert vec.spec == other.spec
    for seed in (7, None, 2):
        (a, info), (b, theirs) = vec.reset(seed), other.reset(seed)
        assert_equal(a, b)
        np.testing.assert_array_equal(info.document, theirs.document)
        for _ in range(40):
            actions = rng.integers(0, 3, (vec.num_envs, 3))
            ours, theirs = vec.step(actions), other.step(actions)
            assert_equal(copied(ours), copied(theirs))
            assert not ours[4].fault.any()
            yield theirs


@pytest.mark.parametrize(("num_envs", "workers"), [(1, 1), (5, 2), (4, 3), (2, 4)])
def test_workers_change_nothing(num_envs, workers):
    with vectorize(Walk, num_envs, workers) as vec:
        alone = vectorize(Walk, num_envs)
        for theirs in played_alike(vec, alone):
            assert theirs[4].fault is None
        np.testing.assert_array_equal(vec.best_actions(), alone.best_actions())
        np.testing.assert_array_equal(vec.state(), alone.state())


@pytest.mark.parametrize("workers", [0, 2])
def test_copies_outlast_the_next_step(workers):
    moves = np.random.default_rng(0).integers(0, 3, (5, 4, 3))
    with vectorize(Walk, 4, workers, copy=True) as vec, vectorize(Walk, 4, workers) as buffers:
        begun, first = vec.reset(seed=1), vec.step(moves[0])
        before, kept = {name: array.copy() for name, array in begun[0].items()}, copied(first)
        shown, _ = buffers.reset(seed=1)
        at_first = shown["noise"].copy()
        for each in moves:
            vec.step(each)
            buffers.step(each)
        assert_equal(begun[0], before)
        assert_equal(copied(first), kept)
        assert not (shown["noise"] == at_first).all()  # without `copy` the same arrays in every step
    with pytest.raises(ConfigurationError):
        vectorize(Walk, 2, copy=1)


def test_halves_may_be_played_apart():
    rng = np.random.default_rng(0)
    with vectorize(Walk, 5, 2) as vec:
        alone = vectorize(Walk, 5)
        assert vec.groups == (slice(0, 3), slice(3, 5))
        vec.reset(seed=1)
        alone.reset(seed=1)
        moves = rng.integers(0, 3, (50, 5, 3))
        vec.send(moves[0][:3], 0)
        for t in range(50):
            vec.send(moves[t][3:], 1)
            first = copied(vec.receive(0))
            if t < 49:
                vec.send(moves[t + 1][:3], 0)
            second = copied(vec.receive(1))
            expected = copied(alone.step(moves[t]))
            for rows, found in ((slice(0, 3), first), (slice(3, 5), second)):
                ends = (expected["final_rows"] >= rows.start) & (expected["final_rows"] < rows.stop)
                for key, array in found.items():
                    if key == "final_rows":
                        np.testing.assert_array_equal(array + rows.start, expected[key][ends])
                    else:
                        final = key.startswith("final ")
                        np.testing.assert_array_equal(array, expected[key][ends if final else rows], key)
        assert_equal(copied(vec.step(moves[0])), copied(alone.step(moves[0])))


def test_halves_out_of_turn_are_refused_and_a_reset_forgets_them():
    with vectorize(Walk, 4, 2) as vec:
        vec.reset(seed=0)
        two = np.zeros((2, 3), int)
        with pytest.raises(CallOrderError):
            vec.receive(0)
        vec.send(two, 0)
        with pytest.raises(CallOrderError):
            vec.send(two, 0)
        with pytest.raises(CallOrderError):
            vec.step(np.zeros((4, 3), int))
        with pytest.raises(CallOrderError):
            vec.state()
        with pytest.raises(CallOrderError):
            vec.best_actions()
        vec.best_actions(rows=[2, 3])
        with pytest.raises(ConfigurationError):
            vec.send(two, 2)
        again, first = vec.reset(seed=0)[0]["noise"].copy(), vectorize(Walk, 4).reset(seed=0)[0]["noise"]
        np.testing.assert_array_equal(again, first)
        vec.step(np.zeros((4, 3), int))


class Odd(Exception):
    def __init__(self, number, *, extra):
        super().__init__(f"number {number}")
        self.extra = extra


def raising(error):
    raise error()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConfigurationError("there is no level 'x'; choose another"),
        lambda: MissingExtra("NetHack", "nethack"),
        lambda: FileNotFoundError(2, "No such file", "games.zip"),
        lambda: SyntaxError("invalid syntax", ("game.py", 3, 1, "def")),
        lambda: Odd(3, extra="more"),
    ],
)
def test_what_make_env_raises_reaches_the_caller_as_it_is(make):
    error = make()
    with pytest.raises(type(error)) as caught:
        vectorize(lambda: raising(make), 2, 1)
    assert str(caught.value) == str(error)
    assert "in a worker process" in caught.value.__notes__[0]
    for name in ("extra", "name", "filename"):
        assert getattr(caught.value, name, None) == getattr(error, name, None)


def test_a_worker_that_dies_at_its_start_is_no_hang():
    def make():
        import os

        os._exit(4)

    with pytest.raises(SimulatorError):
        vectorize(make, 1, 1)


def test_what_a_running_simulator_says_to_its_user_reaches_the_caller():
    class Strict(Guess):
        def step(self, action):
            raise ConfigurationError("this version plays no further")

    with vectorize(Strict, 2, 1) as vec:
        vec.reset(seed=0)
        with pytest.raises(ConfigurationError):
            vec.step([[0], [0]])
        assert vec.faults == []
        with pytest.raises(CallOrderError):
            vec.reset(seed=0)
