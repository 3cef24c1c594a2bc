"""One world everywhere: with and without JIT, at any batch size, thread count and process, and after a restore."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import magrounding as mg
from tests.envs.episode_digest import CASES, digests, scripted_actions, split_digests
from tests.full import in_full

ROOT = Path(__file__).parents[2]
BUSY = [
    "rtfm/nl",
    "rock_paper_scissors/permutation",
    "ma_rtfm/s1",
    "ma_rtfm/s5 eval_new",
    "ma_rtfm/s3 left",
    "ma_rtfm/s5 kind",
    "ma_rtfm/s2g librarian",
    "messenger/s3",
    "ma_messenger/s4",
    "ma_messenger/s3 val",
]
FEW = ["rtfm/nl", "ma_rtfm/s5 eval_new", "ma_rtfm/s5 kind", "ma_messenger/s4"]


def test_without_jit_the_same_kernels_play_the_same_episodes_without_a_warning():
    result = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.envs.episode_digest"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_DISABLE_JIT": "1", "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    assert json.loads(result.stdout) == {"episodes": digests(2, 20), "splits": split_digests()}


def record(vec, seed, steps):
    """[T + 1] of all that each step gives out, by row."""
    rows = seed + np.arange(vec.num_envs)
    frames = [{key: array.copy() for key, array in vec.reset(seed=seed)[0].items()}]
    for step in range(steps):
        observation, rewards, terminated, truncated, info = vec.step(
            scripted_actions(step, rows, vec.num_agents, vec.spec.num_actions)
        )
        frame = {key: array.copy() for key, array in observation.items()}
        frame |= {"rewards": rewards.copy(), "terminated": terminated.copy(), "truncated": truncated.copy()}
        others = "final_observation", "final_rows", "fault"
        frame |= {key: array.copy() for key, array in info.items() if key not in others}
        frame["state"] = vec.state().copy()
        for key, finals in info["final_observation"].items():
            last = np.zeros((vec.num_envs, *finals.shape[1:]), finals.dtype)
            last[info["final_rows"]] = finals
            frame[f"final {key}"] = last
        frames.append(frame)
    return frames


def same(a, b, rows_a=slice(None), rows_b=slice(None)):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert x.keys() == y.keys()
        for key in x:
            np.testing.assert_array_equal(x[key][rows_a], y[key][rows_b], err_msg=key)


@pytest.mark.parametrize("name", in_full(BUSY, FEW))
def test_rows_of_a_large_batch_are_games_of_their_own(name):
    env, options = CASES[name]
    batch = record(mg.make_vec(env, 4096, **options), 100, 12)
    assert any(frame["done"].any() for frame in batch[1:])
    for row in (0, 1, 4095):
        single = record(mg.make_vec(env, 1, **options), 100 + row, 12)
        same(batch, single, slice(row, row + 1))


@pytest.mark.parametrize("name", in_full(BUSY, FEW))
def test_threads_change_nothing(name):
    env, options = CASES[name]
    alone = record(mg.make_vec(env, 301, **options), 5, 30)
    for threads in (2, 3, 400):
        same(alone, record(mg.make_vec(env, 301, num_threads=threads, **options), 5, 30))


@pytest.mark.parametrize("name", BUSY)
def test_the_single_env_plays_each_row_through_its_restarts(name):
    """Row b of `vec.reset(seed=s)` is `env.reset(seed=s + b)`; a restart of a row is `env.reset()`."""
    case, options = CASES[name][0], CASES[name][1] | {"max_cycles": 12}
    seed, rows, steps = 40, 4, 60
    frames = record(mg.make_vec(case, rows, **options), seed, steps)
    for b in range(rows):
        env = mg.make(case, **options)
        agents = env.possible_agents
        observations, infos = env.reset(seed=seed + b)
        episodes = 0

        def compare(views, prefix, frame, b=b, env=env):
            for agent, view in views.items():
                a = env.possible_agents.index(agent)
                for key, array in view.items():
                    if key != "distance":
                        shared = env.spec[key].shared
                        expected = frame[prefix + key][b] if shared else frame[prefix + key][b, a]
                        np.testing.assert_array_equal(array, expected, err_msg=key)

        compare(observations, "", frames[0])
        for step in range(steps):
            chosen = scripted_actions(step, np.array([seed + b]), len(agents))[0]
            acting = env.agents
            views, rewards, terminated, truncated, infos = env.step(
                {agent: int(chosen[agents.index(agent)]) for agent in acting}
            )
            frame = frames[step + 1]
            for agent in acting:
                a = agents.index(agent)
                assert rewards[agent] == frame["rewards"][b, a]
                assert terminated[agent] == frame["terminated"][b, a]
                assert truncated[agent] == frame["truncated"][b, a]
            if frame["done"][b]:
                assert not env.agents
                assert all(info["won"] == frame["won"][b] for info in infos.values())
                compare(views, "final ", frame)
                views, infos = env.reset()
                episodes += 1
            compare(views, "", frame)
        assert episodes > 0


@pytest.mark.parametrize("name", BUSY)
def test_a_reset_without_a_seed_is_the_next_episode(name):
    env, options = CASES[name]
    vec = mg.make_vec(env, 16, **options)
    first = {key: array.copy() for key, array in vec.reset(seed=1)[0].items()}
    second = {key: array.copy() for key, array in vec.reset()[0].items()}
    assert not (first["grid"] == second["grid"]).all(axis=tuple(range(1, first["grid"].ndim))).any()
    again, _ = vec.reset(seed=1)
    assert all((first[key] == again[key]).all() for key in first)
    again, _ = vec.reset()
    assert all((second[key] == again[key]).all() for key in second)


def play_on(vec, steps, offset):
    rows = np.arange(vec.num_envs)
    frames = []
    for step in range(offset, offset + steps):
        observation, rewards, *_, info = vec.step(scripted_actions(step, rows, vec.num_agents, vec.spec.num_actions))
        frames.append({key: array.copy() for key, array in observation.items()})
        frames[-1] |= {"rewards": rewards.copy(), "return": info["return"].copy(), "length": info["length"].copy()}
    return frames


@pytest.mark.parametrize("name", BUSY)
def test_snapshot_restore_and_pickle_go_on_where_they_were(name):
    env, options = CASES[name]
    vec = mg.make_vec(env, 32, **options)
    vec.reset(seed=9)
    play_on(vec, 7, 0)
    snapshot, pickled = vec.snapshot(), pickle.dumps(vec)
    shown = {key: array.copy() for key, array in vec.world.observation.items()}
    future = play_on(vec, 25, 7)
    observation, info = vec.restore(snapshot)
    assert all((observation[key] == shown[key]).all() for key in shown)
    assert info["final_rows"].size == 0
    same(future, play_on(vec, 25, 7))
    other = mg.make_vec(env, 32, num_threads=2, **options)
    other.restore(snapshot)
    same(future, play_on(other, 25, 7))
    other = pickle.loads(pickled)
    assert all((other.world.observation[key] == shown[key]).all() for key in shown)
    same(future, play_on(other, 25, 7))


def test_a_snapshot_is_a_copy():
    vec = mg.make_vec("rtfm", 4)
    vec.reset(seed=0)
    snapshot = vec.snapshot()
    before = pickle.dumps(snapshot)
    play_on(vec, 20, 0)
    assert pickle.dumps(snapshot) == before
