"""The vector env's own promises: validity of arrays, copies, and one sentence for each wrong call."""

import copy
from threading import Thread, current_thread, main_thread

import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import CallOrderError, InvalidAction

STAY = np.zeros((6, 2), np.int64)


def make(**options):
    return mg.make_vec("ma_rtfm", 6, stage="s3", agents=2, **options)


def test_buffers_are_reused_unless_copies_are_asked_for():
    vec = make()
    vec.reset(seed=0)
    grid, rewards = (vec.step(STAY)[k] for k in (0, 1))
    again = vec.step(STAY)
    assert np.shares_memory(grid["grid"], again[0]["grid"])
    assert np.shares_memory(rewards, again[1])
    vec = make(copy=True)
    first, _ = vec.reset(seed=0)
    frames = [vec.step(STAY) for _ in range(5)]
    saved = [[array.copy() for array in first.values()]]
    vec.step(STAY)
    for a, b in ((frames[0], frames[1]), (frames[3], frames[4])):
        assert not any(np.shares_memory(a[0][key], b[0][key]) for key in a[0])
        assert not any(np.shares_memory(a[k], b[k]) for k in (1, 2, 3))
        assert not any(
            np.shares_memory(a[4][key], b[4][key]) for key in a[4] if key not in ("final_observation", "fault")
        )
    assert all((a == b).all() for a, b in zip(saved[0], first.values(), strict=True))
    assert not np.shares_memory(vec.state(), vec.state())


def test_a_world_takes_actions_of_any_layout():
    actions = np.random.default_rng(0).integers(0, 5, (20, 6, 2))
    worlds = [make().world for _ in range(4)]
    for world in worlds:
        world.reset(np.arange(6))
    for now in actions:
        wide = np.zeros((6, 4), np.int64)
        wide[:, ::2] = now
        for world, given in zip(worlds, (now, now.astype(np.int32), np.asfortranarray(now), wide[:, ::2]), strict=True):
            world.step(given, True)
        for world in worlds[1:]:
            np.testing.assert_array_equal(world.state(), worlds[0].state())
            np.testing.assert_array_equal(world.out.illegal, worlds[0].out.illegal)


@pytest.mark.parametrize(
    "actions",
    [
        np.full((6, 2), 5),
        np.full((6, 2), -1),
        np.full((6, 2), 2**63, np.uint64),
        np.zeros((6, 3), int),
        np.zeros(12, int),
        np.full((6, 2), 0.5),
        [["stay", "up"]] * 6,
        [[0, 1], [0]],
        None,
    ],
)
def test_wrong_actions_are_refused_and_change_nothing(actions):
    vec = make()
    vec.reset(seed=0)
    before = vec.snapshot()
    with pytest.raises(InvalidAction):
        vec.step(actions)
    assert all((array == before[key]).all() for key, array in vec.snapshot().items())


@pytest.mark.parametrize("method", ["step", "reset", "restore"])
def test_a_batch_is_played_by_one_thread_at_a_time(monkeypatch, method):
    """Another thread's call is refused, and changes nothing; afterwards, and after an error, the games go on."""
    vec, undisturbed = make(), make()
    vec.reset(seed=0)
    undisturbed.reset(seed=0)
    call = {"step": lambda: vec.step(STAY), "reset": vec.reset, "restore": lambda: vec.restore(vec.snapshot())}[method]
    play, told = type(vec.world).step, []

    def refused():
        try:
            call()
        except CallOrderError as error:
            told.append(str(error))

    def step(world, *arguments):
        if current_thread() is main_thread():
            other = Thread(target=refused)
            other.start()
            other.join()
        play(world, *arguments)

    monkeypatch.setattr(type(vec.world), "step", step)
    vec.step(STAY)
    monkeypatch.undo()
    undisturbed.step(STAY)
    assert ["another thread plays in these games" in each for each in told] == [True]
    assert all((array == undisturbed.snapshot()[key]).all() for key, array in vec.snapshot().items())
    with pytest.raises(InvalidAction):
        vec.step(STAY + 9)
    vec.step(STAY)
    copy.deepcopy(vec).step(STAY)
