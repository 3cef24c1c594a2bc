"""Wrong calls of envs and of what makes them: each ends in one sentence that says what was expected."""

import resource
from functools import partial

import gymnasium
import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction
from magrounding.registry import load
from tests.simulators.games import Walk


def batches():
    return mg.make_vec("rtfm", 2), mg.vectorize(Walk, 2)


@pytest.mark.parametrize("actions", [None, 3, [1], "agent_0", np.zeros(1, int), {1}])
def test_actions_that_are_no_dict(actions):
    env = mg.make("rtfm")
    env.reset(seed=0)
    with pytest.raises(InvalidAction):
        env.step(actions)
    env.step({"agent_0": 0})  # nothing has happened


@pytest.mark.parametrize("agent", ["bob", None, 0, [], "agent_1"])
def test_an_agent_that_is_none(agent):
    env = mg.make("rtfm")
    for space in (env.observation_space, env.action_space):
        with pytest.raises(ConfigurationError, match=r"unknown agent .*; choose from: agent_0"):
            space(agent)


@pytest.mark.parametrize("seed", [True, False, np.True_, -1, 2**62, 0.0, "0", [0]])
def test_a_seed_that_is_none(seed):
    single = gymnasium.make("magrounding/rtfm-v0").unwrapped
    for env in (mg.make("rtfm"), single, *batches()):
        with pytest.raises(ConfigurationError):
            env.reset(seed=seed)


def test_any_integer_seeds_a_gymnasium_env():
    env = gymnasium.make("magrounding/rtfm-v0").unwrapped
    np.testing.assert_equal(env.reset(seed=np.int64(2**40))[0], mg.make("rtfm").reset(seed=2**40)[0]["agent_0"])


def test_what_is_closed_is_played_no_more():
    env = mg.make("rtfm", render_mode="ansi")
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step({"agent_0": 0}), lambda: env.step({}), env.state, env.render):
        with pytest.raises(CallOrderError):
            call()
    for vec in batches():
        vec.reset(seed=0)
        vec.close()
        vec.close()
        for call in (vec.reset, lambda vec=vec: vec.step(np.zeros((2, vec.num_agents), int)), vec.state):
            with pytest.raises(CallOrderError):
                call()


def test_nothing_is_known_of_a_game_before_reset():
    env = mg.make("rtfm", render_mode="ansi")
    for call in (env.state, env.render):
        with pytest.raises(CallOrderError, match=r"call reset\(\) before"):
            call()
    vec = mg.make_vec("rtfm", 2)
    for call in (vec.state, vec.snapshot, vec.entity_places):
        with pytest.raises(CallOrderError, match=r"call reset\(\) before"):
            call()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_envs": True}, "num_envs must be an integer from 1"),
        ({"num_envs": 0}, "num_envs must be an integer from 1"),
        ({"num_envs": 2.0}, "num_envs must be an integer from 1"),
        ({"num_envs": 2**40}, "num_envs must be an integer from 1"),
        ({"num_envs": 2**31 - 1}, r"2,147,483,647 games of this world take .* GiB, half of this machine's memory is"),
        ({"num_threads": 0}, "num_threads must be an integer from 1"),
        ({"workers": True}, "workers must be an integer from 0 to 256"),
        ({"timeout": "soon"}, "timeout must be a number of seconds above 0, got 'soon'"),
        ({"timeout": float("nan")}, "timeout must be a number of seconds above 0"),
        ({"copy": "yes"}, "copy is True or False, got 'yes'"),
        ({"sight": True}, "sight of Rtfm takes a number or None, got True"),
        ({"sight": 10**400}, "sight of Rtfm takes a finite number"),
        ({"occupants": True}, "occupants of Rtfm takes one of 1, 2, got True"),
        ({"max_cycles": 2**31}, "max_cycles of Rtfm takes an integer <= 2147483647"),
    ],
)
def test_numbers_that_are_none(changes, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        mg.make_vec("rtfm", **{"num_envs": 2, **changes})
    if "num_threads" not in changes and "sight" not in changes:
        assert mg.make_vec("rtfm", np.int64(2)).num_envs == 2


def test_a_game_that_is_larger_than_the_memory_is_refused_before_it_is_made():
    for make in (mg.make, partial(mg.make_vec, num_envs=1)):
        with pytest.raises(ConfigurationError, match=r"a game of this world takes .* GiB, half of"):
            make("scienceworld", max_choices=2**31 - 1)


@pytest.mark.parametrize("id", [None, [], np.array(["rtfm"]), 3, "nothing"])
def test_an_id_that_is_none(id):
    with pytest.raises(ConfigurationError, match="unknown env"):
        mg.make(id)


def test_maps_of_any_supported_size_take_memory_in_proportion_to_their_cells():
    mg.make("rtfm").reset(seed=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for size in (80, 300):
        env = mg.make("rtfm", size=size)
        seen = env.reset(seed=0)[0]["agent_0"]
        row, column = seen["position"]
        assert seen["distance"].shape == (size, size, 2)
        assert not seen["distance"][row, column].any()
        assert seen["distance"][0, 0] == pytest.approx((-column / size, -row / size))
        env.step({"agent_0": 1})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB; from each cell: 60 GiB
    with pytest.raises(ConfigurationError, match="size of Rtfm takes an integer <= 1000, got 1001"):
        mg.make("rtfm", size=1001)
    env = mg.make("rtfm", size=300, render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="pictures show at most 100 cells a side"):
        env.render()


@pytest.mark.parametrize("marks", [3, "x", np.zeros((1, 6, 6)), np.zeros((2, 6, 6), int), np.zeros(3, int)])
def test_marks_that_are_none(marks):
    env = mg.make("rtfm", render_mode="ansi_full")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match=r"marks are an array of integers \[1, 6, 6\], got"):
        env.render(marks)


@pytest.mark.parametrize("snapshot", [None, 3, {}, {"games.keys": 3}])
def test_a_snapshot_that_is_none(snapshot):
    with pytest.raises(ConfigurationError, match="the snapshot belongs to a world of another configuration"):
        mg.make_vec("rtfm", 2).restore(snapshot)


@pytest.mark.parametrize(
    ("register", "entry", "complaint"),
    [
        (mg.register_env, None, "of class EnvEntry"),
        (mg.register_env, mg.AgentEntry("a", "b:c"), "of class EnvEntry"),
        (mg.register_env, mg.EnvEntry("a/b", "c:d"), "of class EnvEntry"),
        (mg.register_env, mg.EnvEntry(None, "c:d"), "of class EnvEntry"),
        (mg.register_agent, "relread", "of class AgentEntry"),
        (mg.register_algorithm, 3, "of class AlgorithmEntry"),
        (mg.register_preset, {}, "of class PresetEntry"),
    ],
)
def test_what_cannot_be_registered(register, entry, complaint):
    before = {id(each): dict(each) for each in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS)}
    with pytest.raises(ConfigurationError, match=complaint):
        register(entry)
    assert before == {id(each): dict(each) for each in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS)}


@pytest.mark.parametrize("point", [None, "", "x", ":x", "x:", ".x:y", "nowhere:x", "magrounding:nothing", "a b:c"])
def test_an_entry_point_that_points_at_nothing(point):
    with pytest.raises(ConfigurationError):
        load(point)
    with pytest.raises(ConfigurationError):
        mg.EnvEntry("fuzzed", point).describe()


def test_an_error_is_one_line_even_of_what_is_printed_in_several():
    with pytest.raises(mg.MagroundingError) as caught:
        mg.make(np.zeros((3, 3)))
    assert len(str(caught.value).splitlines()) == 1
