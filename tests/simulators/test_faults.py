"""Workers that die, hang or raise, by real signals: their games are lost, no other game notices."""

import logging
import os
import signal
import time

import numpy as np
import pytest

from magrounding.simulators.env_row import episode_seed
from magrounding.simulators.faults import SimulatorError
from magrounding.simulators.vectorize import vectorize
from tests.full import in_the_full_suite
from tests.simulators.games import DIE, EXIT, HANG, RAISE, STOP, Trouble, Walk
from tests.simulators.test_workers import copied

PATIENCE = 10.0
"""Seconds without an answer: as long as a healthy worker may take on a busy machine."""


def hurt(vec, worker, how):
    os.kill(vec.pids[worker], how)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "stopped"])
def test_only_the_games_of_the_worker_are_lost(how, caplog):
    rng, began = np.random.default_rng(3), time.time()
    with vectorize(Walk, 5, 2, timeout=PATIENCE) as vec, caplog.at_level(logging.WARNING, "magrounding.simulators"):
        alone = vectorize(Walk, 5)
        vec.reset(seed=9)
        alone.reset(seed=9)
        mine, others = [0, 1, 3], [2, 4]
        episodes = np.zeros(5, int)
        for _ in range(7):
            actions = rng.integers(0, 2, (5, 3))
            before, expected = copied(vec.step(actions)), copied(alone.step(actions))
            episodes += before["done"]
        pid = vec.pids[0]
        hurt(vec, 0, how)
        actions = rng.integers(0, 2, (5, 3))
        result = vec.step(actions)
        expected, found = copied(alone.step(actions)), copied(result)

        assert result[4].fault.tolist() == [True, True, False, True, False]
        ended = sorted({*mine} | ({*expected["final_rows"].tolist()} & {*others}))
        assert found["final_rows"].tolist() == ended
        for key, array in found.items():
            if not key.startswith("final"):
                np.testing.assert_array_equal(array[others], expected[key][others], key)
        assert found["done"][mine].all()
        assert not found["won"][mine].any()
        assert not found["rewards"][mine].any()
        assert not found["terminated"][mine].any()
        assert not found["illegal"][mine].any()
        np.testing.assert_array_equal(found["truncated"][mine], before["alive"][mine])
        fresh = before["done"][mine]
        np.testing.assert_array_equal(found["length"][mine], np.where(fresh, 0, before["length"][mine]) + 1)
        np.testing.assert_array_equal(found["return"][mine], np.where(fresh[:, None], 0, before["return"][mine]))
        for row in mine:
            at = found["final_rows"].tolist().index(row)
            for key in ("place", "noise", "action_mask"):
                np.testing.assert_array_equal(found[f"final {key}"][at], before[key][row])
            fresh_game, _ = Walk().reset(episode_seed(9 + row, int(episodes[row]) + 1))
            np.testing.assert_array_equal(found["noise"][row, 2], fresh_game["walker_2"]["noise"])
        assert found["alive"][mine].all()

        for _ in range(30):
            actions = rng.integers(0, 2, (5, 3))
            result, expected = vec.step(actions), copied(alone.step(actions))
            assert not result[4].fault.any()
            found = copied(result)
            for key, array in found.items():
                if not key.startswith("final"):
                    np.testing.assert_array_equal(array[others], expected[key][others], key)
        (fault,) = vec.faults
        assert (fault.worker, fault.rows) == (0, (0, 1, 3))
        assert fault.reason == ("killed by SIGKILL" if how == signal.SIGKILL else f"no answer for {PATIENCE:g} s")
        assert began <= fault.time <= time.time()
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert vec.pids[0] != pid
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        pytest.param(HANG, f"no answer for {PATIENCE:g} s", marks=in_the_full_suite("ten seconds of waiting")),
        (RAISE, "RuntimeError: the simulator fell over"),
        (DIE, "killed by SIGKILL"),
        pytest.param(STOP, f"no answer for {PATIENCE:g} s", marks=in_the_full_suite("ten seconds of waiting")),
        (EXIT, "exited with code 3"),
    ],
)
def test_faults_from_within_a_step(action, reason):
    with vectorize(Trouble, 4, 2, timeout=PATIENCE) as vec:
        vec.reset(seed=0)
        vec.step(np.zeros((4, 1), int))
        actions = np.zeros((4, 1), int)
        actions[3] = action
        obs, rewards, _, truncated, info = vec.step(actions)
        assert [fault.reason for fault in vec.faults] == [reason]
        assert vec.faults[0].rows == (1, 3)
        assert info.fault.tolist() == truncated[:, 0].tolist() == [False, True, False, True]
        assert rewards[:, 0].tolist() == [1, 0, 1, 0]
        assert obs["observation"][:, 0, 1].tolist() == [2, 0, 2, 0]
        assert obs["observation"][[1, 3], 0, 0].tolist() == [episode_seed(1, 1), episode_seed(3, 1)]
        assert info.final_observation["observation"][:, 0].tolist() == [[1, 1], [3, 1]]
        assert info.length.tolist() == [2, 2, 2, 2]
        for _ in range(3):
            info = vec.step(np.zeros((4, 1), int))[4]
        assert info.length.tolist() == [5, 3, 5, 3]
        assert len(vec.faults) == 1


def test_a_fault_in_one_half_is_shown_in_the_step_of_each_half():
    with vectorize(Trouble, 4, 2) as vec:  # worker 0: rows 0 and 2, worker 1: rows 1 and 3
        vec.reset(seed=0)
        two = np.zeros((2, 1), int)
        vec.send([[DIE], [0]], 0)
        obs, _, _, _, info = vec.receive(0)
        assert info.fault.tolist() == info.done.tolist() == [True, False]
        vec.send(two, 0)
        vec.send(two, 1)
        obs, _, _, _, info = vec.receive(1)
        assert info.fault.tolist() == [True, False]
        assert info.final_rows.tolist() == [0]
        assert info.final_observation["observation"].tolist() == [[[2, 0]]]
        assert obs["observation"][:, 0].tolist() == [[episode_seed(2, 1), 0], [3, 1]]
        obs, _, _, _, info = vec.receive(0)
        assert not info.fault.any()
        assert obs["observation"][:, 0, 1].tolist() == [1, 2]
        obs, _, _, _, info = vec.step(np.zeros((4, 1), int))
        assert obs["observation"][:, 0, 1].tolist() == [2, 3, 1, 2]
        assert not info.fault.any()


def test_a_fault_at_a_question_is_shown_in_the_next_step():
    with vectorize(Walk, 3, 2) as vec:
        vec.reset(seed=0)
        vec.step(np.ones((3, 3), int))
        hurt(vec, 0, signal.SIGKILL)
        labels = vec.best_actions()
        assert labels[0].all()
        assert (labels[1:].sum(2) == 1).all()
        _, _, _, _, info = vec.step(np.ones((3, 3), int))
        assert info.fault.tolist() == [True, False, False]
        assert info.length.tolist() == [2, 2, 2]


def test_a_fault_at_reset_shows_the_next_episode():
    with vectorize(Trouble, 2, 2) as vec:
        hurt(vec, 1, signal.SIGKILL)
        obs, info = vec.reset(seed=5)
        assert info.fault.tolist() == [False, True]
        assert obs["observation"][:, 0, 0].tolist() == [5, episode_seed(6, 1)]

    class Fragile(Trouble):
        """Its process dies when it is reset with 6."""

        def reset(self, *, seed=None, options=None):
            if seed == 6:
                os._exit(5)
            return super().reset(seed=seed)

    with vectorize(Fragile, 2, 2) as vec:
        obs, info = vec.reset(seed=5)
        assert info.fault.tolist() == [False, True]
        assert not info.done.any()
        assert obs["observation"][:, 0, 0].tolist() == [5, episode_seed(6, 1)]
        assert not vec.step([[0], [0]])[4].fault.any()


@pytest.mark.parametrize(
    ("always", "reason"), [(RAISE, "the simulator fell over"), ("reset", "this reset never works")]
)
def test_a_worker_that_fails_again_and_again_is_given_up(always, reason):
    vec = vectorize(lambda: Trouble(always=always), 2, 1)

    def play():
        vec.reset(seed=0)
        for _ in range(6):
            vec.step([[0], [0]])

    with pytest.raises(SimulatorError):
        play()
    assert len(vec.faults) == 5
    assert vec.pids == [0]
    vec.close()


def test_faults_with_steps_between_them_are_borne():
    with vectorize(Trouble, 1, 1) as vec:
        vec.reset(seed=0)
        for _ in range(6):
            assert vec.step([[DIE]])[4].fault.all()
            assert not vec.step([[0]])[4].fault.any()
        assert len(vec.faults) == 6
