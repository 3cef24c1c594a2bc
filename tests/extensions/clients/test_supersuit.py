"""What SuperSuit's wrappers make of our envs through `for_tensors`: the table of docs/clients.md."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.extensions.clients import for_tensors
from tests.envs.test_conformance import IDS, _last_stage
from tests.full import in_the_full_suite

supersuit = pytest.importorskip("supersuit")
PLAY = {
    "action_lambda_v1": [lambda action, space: action, lambda space: space],
    "black_death_v3": [],
    "clip_reward_v0": [],
    "delay_observations_v0": [2],
    "dtype_v0": [np.float64],
    "flatten_v0": [],
    "frame_stack_v1": [3],
    "max_observation_v0": [2],
    "normalize_obs_v0": [],
    "observation_lambda_v0": [lambda seen, space: seen, lambda space: space],
    "pad_action_space_v0": [],
    "pad_observations_v0": [],
    "reward_lambda_v0": [lambda reward: 2 * reward],
    "sticky_actions_v0": [0.25],
}


def flat(id, stage):
    return for_tensors(mg.make(id, **stage, max_cycles=12), flatten=True, dead="padded")


def games(env):
    """Observations of random play."""
    seen, _ = env.reset(seed=0)
    for _ in range(30):
        yield seen
        seen, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        if not env.agents:
            yield seen
            seen, _ = env.reset()


@in_the_full_suite("three minutes")
@pytest.mark.parametrize(("id", "stage"), _last_stage(IDS))
def test_wrappers_play_every_env(id, stage):
    for name, arguments in PLAY.items():
        env = getattr(supersuit, name)(flat(id, stage), *arguments)
        for seen in games(env):
            assert all(env.observation_space(agent).contains(view) for agent, view in seen.items()), name
    env = supersuit.pettingzoo_env_to_vec_env_v1(flat(id, stage))
    seen, _ = env.reset(seed=0)
    assert len(seen) == env.num_envs == len(flat(id, stage).possible_agents)


def test_an_indicator_tells_agents_of_one_flat_view_apart():
    for seen in games(supersuit.agent_indicator_v0(flat("ma_rtfm", {"agents": 3}))):
        np.testing.assert_array_equal(np.stack(list(seen.values()))[:, -3:] > 0, np.eye(3, dtype=bool))


@pytest.mark.parametrize("name", ["clip_actions_v0", "color_reduction_v0"])
def test_wrappers_of_images_and_continuous_actions_have_none_here(name):
    with pytest.raises((AssertionError, AttributeError)):
        list(games(getattr(supersuit, name)(flat("rtfm", {}))))


def test_skipping_frames_needs_a_generator():
    env = flat("rtfm", {})
    env.unwrapped.np_random = np.random.default_rng(0)
    assert all(len(seen) == 1 for seen in games(supersuit.frame_skip_v0(env, 2)))
