"""WorldEnv: agents, flags, masks, seeds and texts of single games."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numba
import numpy as np
import pytest
from pettingzoo.utils import BaseParallelWrapper

import magrounding as mg
from magrounding.envs.parallel import WorldEnv, distances
from magrounding.envs.single_agent import SingleAgentEnv
from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction
from magrounding.spec import SCORES
from tests.envs.toy_world import STEPS, ToyWorld
from tests.full import in_the_full_suite

STAY, UP, DOWN, LEFT, RIGHT = range(5)


def toy(agents: int = 2, max_cycles: int = 20, render_mode: str | None = None) -> WorldEnv:
    return WorldEnv(ToyWorld(agents, max_cycles), "toy", {"agents": agents}, render_mode)


def walk(env: WorldEnv, agent: str, target: np.ndarray, avoid: np.ndarray) -> list[tuple[Any, ...]]:
    """Lead one agent to a cell by a shortest way around another, the others staying; returns what the steps gave."""
    world, results = env.world, []
    i = env.possible_agents.index(agent)
    while not (world.agents[i] == target).all() and agent in env.agents:
        frontier, first = [tuple(world.agents[i])], {tuple(world.agents[i]): STAY}
        for cell in frontier:
            for action in (UP, DOWN, LEFT, RIGHT):
                after = tuple(np.array(cell) + STEPS[action])
                if after not in first and 1 <= min(after) <= max(after) <= 3 and after != tuple(avoid):
                    first[after] = first[cell] or action
                    frontier.append(after)
        results.append(env.step({name: first[tuple(target)] if name == agent else STAY for name in env.agents}))
    return results


def distance_from(position: np.ndarray, height: int, width: int) -> np.ndarray:
    """(dx / W, dy / H) to each cell, zeros for the dead, in the words of the definition."""
    distance = np.zeros((height, width, 2), np.float32)
    for row, column in np.ndindex(height, width):
        if position[0] >= 0:
            distance[row, column] = (column - position[1]) / width, (row - position[0]) / height
    return distance


def test_observations_are_what_the_world_shows():
    env = toy()
    observations, infos = env.reset(seed=3)
    assert list(observations) == list(infos) == env.agents == env.possible_agents == ["agent_0", "agent_1"]
    for i, agent in enumerate(env.agents):
        observation = observations[agent]
        assert env.observation_space(agent).contains(observation)
        assert list(observation) == list(env.observation_space(agent).spaces)
        for key, value in observation.items():
            if key != "distance":
                shown = env.world.observation[key][0]
                np.testing.assert_array_equal(value, shown if env.spec[key].shared else shown[i])
        np.testing.assert_array_equal(observation["distance"], distance_from(observation["position"], 5, 5))
        np.testing.assert_array_equal(infos[agent]["action_mask"], observation["action_mask"])
        assert infos[agent]["text"] == {**env.world.text(0), "inventory": ""}
        assert infos[agent]["document"] == 3000
        assert "won" not in infos[agent]
        assert "illegal" not in infos[agent]


def test_first_reset_without_a_seed_is_random():
    seeds = set()
    for _ in range(4):
        env = toy()
        env.reset()
        seeds.add(env.world.seed)
    assert len(seeds) == 4


def test_a_dead_agent_leaves_and_the_others_play_on():
    env = toy(agents=3, max_cycles=200)
    env.reset(seed=1)
    pit, flag = env.world.pit, env.world.flag
    results = walk(env, "agent_1", pit, avoid=flag)
    observations, rewards, terminations, truncations, infos = results[-1]
    assert list(observations) == list(rewards) == list(terminations) == list(truncations) == list(infos)
    assert list(observations) == ["agent_0", "agent_1", "agent_2"]
    assert terminations == {"agent_0": False, "agent_1": True, "agent_2": False}
    assert not any(truncations.values())
    assert rewards["agent_1"] == -1
    assert rewards["agent_0"] == pytest.approx(-0.02)
    assert not any("won" in info for info in infos.values())
    np.testing.assert_array_equal(observations["agent_1"]["position"], [-1, -1])
    assert not observations["agent_1"]["distance"].any()
    assert env.agents == ["agent_0", "agent_2"]
    assert env.num_agents == 2

    observations, rewards, terminations, _, infos = walk(env, "agent_2", flag, avoid=pit)[-1]
    assert list(observations) == list(rewards) == ["agent_0", "agent_2"]
    assert terminations == {"agent_0": True, "agent_2": True}
    assert rewards["agent_2"] == 1
    assert all(info["won"] is True for info in infos.values())
    assert env.agents == []


def test_the_time_limit_truncates():
    env = toy(max_cycles=4)
    env.reset(seed=0)
    for _ in range(3):
        *_, infos = env.step({"agent_0": STAY, "agent_1": STAY})
    assert "won" not in infos["agent_0"]
    _, _, terminations, truncations, infos = env.step({"agent_0": STAY, "agent_1": STAY})
    assert truncations == {"agent_0": True, "agent_1": True}
    assert terminations == {"agent_0": False, "agent_1": False}
    assert infos["agent_0"]["won"] is False
    assert env.agents == []


@pytest.mark.parametrize(
    "actions",
    [
        {"agent_0": 0},
        {"agent_0": 0, "agent_1": 0, "agent_2": 0},
        {"agent_0": 5, "agent_1": 0},
        {"agent_0": 0.0, "agent_1": 0},
        {"agent_0": None, "agent_1": 0},
        {"agent_0": np.array([0]), "agent_1": 0},
        {},
        None,
        [1, 0],
        "agent_0",
    ],
)
def test_bad_actions_are_refused_and_change_nothing(actions):
    env = toy()
    env.reset(seed=0)
    with pytest.raises(InvalidAction):
        env.step(actions)
    assert env.world.out.length[0] == 0


def test_actions_of_any_integer_type():
    env = toy()
    env.reset(seed=0)
    env.step({"agent_1": np.int8(0), "agent_0": np.array(0)})
    assert env.world.out.length[0] == 1


def test_steps_before_reset_and_after_the_end():
    env = toy(max_cycles=1)
    with pytest.raises(CallOrderError):
        env.step({"agent_0": 0, "agent_1": 0})
    with pytest.raises(CallOrderError):
        env.step({})
    env.reset(seed=0)
    env.step({"agent_0": 0, "agent_1": 0})
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(CallOrderError):
        env.step({"agent_0": 0, "agent_1": 0})


def test_space_objects_are_the_same_on_each_call_and_apart_for_each_agent():
    env = toy()
    for agent in env.possible_agents:
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.action_space(agent) is env.action_space(agent)
    assert env.action_space("agent_0") is not env.action_space("agent_1"), "seeding one would seed the other"
    assert env.state_space.shape == (31,)


@pytest.mark.alone
@in_the_full_suite("speeds, which others' work disturbs")
@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="speed is that of compiled kernels")
def test_one_game_is_fast_enough():
    env = mg.make("ma_rtfm", stage="s1", agents=2)
    env.reset(seed=0)
    actions = [dict(zip(env.agents, row, strict=True)) for row in np.random.default_rng(0).integers(5, size=(1500, 2))]
    best = np.inf
    for _ in range(6):  # the best of several, in processor time, beside a plain loop: the machine's pace does not count
        pace, start = seconds_of_a_loop(), time.process_time()
        for row in actions:
            if not env.agents:
                env.reset()
            env.step(row)
        spent = time.process_time() - start
        pace = min(pace, seconds_of_a_loop())  # a pause in one of the two would make the step look cheap
        best = min(best, spent / len(actions) / pace)
    assert best <= 800, f"a step takes {best:.0f} turns of a loop; 800 are 28,000 steps/s at 45 ns a turn"


def seconds_of_a_loop(turns=200_000):
    """Of one turn of a loop that only writes to a dictionary."""
    table, start = {}, time.process_time()
    for i in range(turns):
        table[i & 63] = i
    return (time.process_time() - start) / turns


def test_render_modes():
    assert toy().render() is None
    env = toy(render_mode="ansi")
    with pytest.raises(CallOrderError):
        env.render()
    env.reset(seed=0)
    assert "reach the flag" in env.render()
    env = toy(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape[2] == 3
    with pytest.raises(ConfigurationError):
        toy(render_mode="human")


@pytest.mark.parametrize(("height", "width"), [(4, 6), (5, 5)])
def test_distance_points_from_the_agent_to_each_cell(height, width):
    every = np.array([*np.ndindex(height, width), (-1, -1)])
    for cell, at_once in zip(every, distances(*every.T, height, width), strict=True):
        found = distances(*cell, height, width)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(at_once, distance_from(cell, height, width))
        np.testing.assert_array_equal(at_once, found)
        found[:] = 9  # the caller's own
        np.testing.assert_array_equal(at_once, distances(*cell, height, width))


def test_what_a_world_cannot_do_is_refused():
    world = ToyWorld(without=("state", "scene"))
    env = WorldEnv(world, "toy", {}, "ansi")
    env.reset(seed=0)
    assert not hasattr(env, "state_space")
    assert env.metadata["render_modes"] == ["ansi"]
    with pytest.raises(ConfigurationError):
        env.state()
    with pytest.raises(ConfigurationError):
        WorldEnv(world, "toy", {}, "ansi_full")


def test_a_score_is_given_at_the_end_by_worlds_that_have_one():
    world = ToyWorld(max_cycles=1)
    world.spec = replace(world.spec, capabilities=world.spec.capabilities | {SCORES})
    env = WorldEnv(world, "toy", {})
    _, infos = env.reset(seed=0)
    assert "score" not in infos["agent_0"]
    world.out.score[0] = 0.25
    *_, infos = env.step({"agent_0": STAY, "agent_1": STAY})
    assert [info["score"] for info in infos.values()] == [0.25, 0.25]
    plain = toy(max_cycles=1)
    plain.reset(seed=0)
    *_, infos = plain.step({"agent_0": STAY, "agent_1": STAY})
    assert "score" not in infos["agent_0"]


def test_single_agent_env():
    env = SingleAgentEnv(toy(agents=1, max_cycles=5))
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    assert info["text"]["goal"] == "reach the flag"
    for _ in range(5):
        observation, reward, terminated, truncated, info = env.step(np.int64(STAY))
    assert (reward, terminated, truncated, info["won"]) == (-1, False, True, False)
    with pytest.raises(CallOrderError):
        env.step(STAY)


def test_any_parallel_env_of_one_agent_is_a_gymnasium_env():
    wrapped = BaseParallelWrapper(toy(agents=1, max_cycles=3, render_mode="ansi"))
    assert not isinstance(wrapped, WorldEnv)
    env, plain = SingleAgentEnv(wrapped), SingleAgentEnv(toy(agents=1, max_cycles=3))
    assert (env.render_mode, env.metadata["name"]) == ("ansi", "toy")
    np.testing.assert_equal(env.reset(seed=1), plain.reset(seed=1))
    np.testing.assert_equal(env.step(DOWN), plain.step(DOWN))
    assert "reach the flag" in env.render()
    env.close()
