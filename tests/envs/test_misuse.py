"""Wrong calls of envs and of what makes them: an error of ours comes of each, and nothing changes."""

import resource
from functools import partial

import gymnasium
import numpy as np
import pytest

import magrounding as mg
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.registry import load
from tests.simulators.games import Walk


def batches():
    return mg.make_vec("rtfm", 2), mg.vectorize(Walk, 2)


@pytest.mark.parametrize("agent", ["agent_1", None, []])
def test_an_agent_that_is_none(agent):
    env = mg.make("rtfm")
    for space in (env.observation_space, env.action_space):
        with pytest.raises(ConfigurationError):
            space(agent)


@pytest.mark.parametrize("seed", [True, np.True_, -1, 2**62, 0.0, "0"])
def test_a_seed_that_is_none(seed):
    single = gymnasium.make("magrounding/rtfm-v1").unwrapped
    for env in (mg.make("rtfm"), single, *batches()):
        with pytest.raises(ConfigurationError):
            env.reset(seed=seed)


def test_any_integer_seeds_a_gymnasium_env():
    env = gymnasium.make("magrounding/rtfm-v1").unwrapped
    np.testing.assert_equal(env.reset(seed=np.int64(2**40))[0], mg.make("rtfm").reset(seed=2**40)[0]["agent_0"])


def test_a_closed_batch_is_played_no_more():
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
        with pytest.raises(CallOrderError):
            call()
    vec = mg.make_vec("rtfm", 2)
    for call in (vec.state, vec.snapshot, vec.entity_places):
        with pytest.raises(CallOrderError):
            call()


@pytest.mark.parametrize(
    "changes",
    [
        {"num_envs": True},
        {"num_envs": 0},
        {"num_envs": 2.0},
        {"num_envs": None},
        {"num_envs": 2**40},
        {"num_envs": 2**31 - 1},  # more than the memory holds
        {"num_threads": 0},
        {"workers": True},
        {"timeout": "soon"},
        {"timeout": float("nan")},
        {"copy": "yes"},
    ],
    ids=str,
)
def test_numbers_that_are_none(changes):
    with pytest.raises(ConfigurationError):
        mg.make_vec("rtfm", **{"num_envs": 2, **changes})


def test_a_game_that_is_larger_than_the_memory_is_refused_before_it_is_made():
    for make in (mg.make, partial(mg.make_vec, num_envs=1)):
        with pytest.raises(ConfigurationError):
            make("scienceworld", max_choices=2**31 - 1)


@pytest.mark.parametrize("id", [None, [], np.array(["rtfm"]), "nothing"])
def test_an_id_that_is_none(id):
    with pytest.raises(ConfigurationError):
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
    with pytest.raises(ConfigurationError):
        mg.make("rtfm", size=1001)
    env = mg.make("rtfm", size=300, render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError):
        env.render()


@pytest.mark.parametrize("marks", ["x", np.zeros((1, 6, 6)), np.zeros((2, 6, 6), int)])
def test_marks_that_are_none(marks):
    env = mg.make("rtfm", render_mode="ansi_full")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError):
        env.render(marks)


def test_a_snapshot_of_another_configuration_or_of_nothing_is_refused():
    larger = mg.make_vec("rtfm", 5)
    larger.reset(seed=0)
    for snapshot in (larger.snapshot(), None, {}, {"games.keys": 3}):
        with pytest.raises(ConfigurationError):
            mg.make_vec("rtfm", 2).restore(snapshot)


@pytest.mark.parametrize(
    ("register", "entry"),
    [
        (mg.register_env, None),
        (mg.register_env, mg.AgentEntry("a", "b:c")),
        (mg.register_env, mg.EnvEntry("a/b", "c:d")),
        (mg.register_agent, "relread"),
        (mg.register_algorithm, 3),
        (mg.register_preset, {}),
    ],
)
def test_what_cannot_be_registered(register, entry):
    before = {id(each): dict(each) for each in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS)}
    with pytest.raises(ConfigurationError):
        register(entry)
    assert before == {id(each): dict(each) for each in (mg.ENVS, mg.AGENTS, mg.ALGORITHMS, mg.PRESETS)}


@pytest.mark.parametrize("point", [None, "x", ":x", "nowhere:x", "magrounding:nothing"])
def test_an_entry_point_that_points_at_nothing(point):
    with pytest.raises(ConfigurationError):
        load(point)
    with pytest.raises(ConfigurationError):
        mg.EnvEntry("fuzzed", point).describe()


def test_an_error_is_one_line_even_of_what_is_printed_in_several():
    with pytest.raises(mg.MagroundingError) as caught:
        mg.make(np.zeros((3, 3)))
    assert len(str(caught.value).splitlines()) == 1
