"""Every registered environment, stage and kind of option, against every conformance test there is."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.utils import parallel_to_aec

import magrounding as mg
from magrounding.builtin import register_builtin
from magrounding.envs.checks import check_parallel_env
from magrounding.envs.messenger.entry import ENVS as MESSENGER
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm.entry import ENVS as RTFM

with warnings.catch_warnings():
    # PettingZoo's test package imports its own example environments by a route that it has itself deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
    from pettingzoo.test.seed_test import seed_test
    from pettingzoo.test.state_test import state_test

VARIANTS: dict[str, dict[str, Any]] = {
    "one_agent": {"agents": 1},
    "three_agents": {"agents": 3},
    "six_agents": {"agents": 6, "size": 10},
    "individual_death": {"agents": 3, "death": "individual"},
    "sight": {"sight": 2},
    "one_occupant": {"occupants": 1},
    "left_items": {"put_aside": "left"},
    "unlimited_chase": {"chase_range": None},
    "redrawn_text": {"resample_text": True},
    "ordered_text": {"shuffle_manual": False},
    "size_10": {"size": 10},
    "eval": {"split": "eval"},
    "eval_new": {"split": "eval_new"},
    "eval_paraphrase": {"split": "eval_paraphrase"},
    "val": {"split": "val"},
    "test": {"split": "test"},
    "test_seen_dynamics": {"split": "test_seen_dynamics"},
}
COMPILED = {entry.id: entry for entry in (*RTFM, *MESSENGER)}
STAGES = [(entry.id, {entry.stage_option: stage}) for entry in COMPILED.values() for stage in entry.stages]


def _cases() -> list[Any]:
    """Each stage by itself, and each option with the easiest and the hardest stage of every id that has it."""
    cases = [pytest.param(id, options, id="-".join([id, *options.values()])) for id, options in STAGES]
    for entry in COMPILED.values():
        for name, variant in VARIANTS.items():
            unknown = variant.keys() - entry.options.keys()
            splits = {options["split"] for options in entry.evaluation_sets.values()}
            if unknown or variant.get("split", "train") not in splits:
                continue
            for stage in {entry.stages[0]: 0, entry.stages[-1]: 0}:
                options = {entry.stage_option: stage, **variant}
                cases.append(pytest.param(entry.id, options, id=f"{entry.id}-{stage}-{name}"))
    return cases


def _make(id: str, options: dict[str, Any], **more: Any) -> WorldEnv:
    return mg.make(id, **{"max_cycles": 40, **options}, **more)


@pytest.mark.parametrize(("id", "options"), _cases())
def test_our_own_check(id, options):
    check_parallel_env(lambda: _make(id, options))


@pytest.mark.parametrize(("id", "options"), STAGES)
def test_pettingzoo_parallel(id, options, capsys):
    parallel_api_test(_make(id, options), num_cycles=200)
    parallel_seed_test(lambda: _make(id, options), num_cycles=100)
    assert "Passed Parallel API test" in capsys.readouterr().out


# api_test expects flat arrays, warns of a Dict and does not require anything else.
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning")
@pytest.mark.parametrize(("id", "options"), STAGES)
def test_pettingzoo_aec(id, options, capsys):
    api_test(parallel_to_aec(_make(id, options)), num_cycles=60)
    seed_test(lambda: parallel_to_aec(_make(id, options)), num_cycles=100)
    state_test(parallel_to_aec(_make(id, options)), _make(id, options))
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning")
def test_pettingzoo_aec_through_deaths():
    options = {"stage": "s3", "agents": 3, "death": "individual"}
    parallel_api_test(_make("ma_rtfm", options), num_cycles=200)
    api_test(parallel_to_aec(_make("ma_rtfm", options)), num_cycles=200)


@pytest.mark.parametrize("id", COMPILED)
def test_pettingzoo_registry(id):
    stage = {mg.ENVS[id].stage_option: mg.ENVS[id].stages[-1]}
    env = pettingzoo.make("parallel", f"magrounding/{id}-v0", **stage, render_mode="ansi", max_cycles=7)
    assert isinstance(env, WorldEnv)
    assert (env.id, env.render_mode, env.spec.max_cycles) == (id, "ansi", 7)
    assert env.metadata["name"] == str(env) == f"{id}-v0"
    ours, theirs = mg.make(id, **stage).reset(seed=3)[0], env.reset(seed=3)[0]
    np.testing.assert_equal(theirs, ours)


def test_registering_twice_is_quiet():
    register_builtin()  # PettingZoo would warn of an overridden id, and warnings are errors here


@pytest.mark.parametrize("id", COMPILED)
def test_declared_as_multi_agent_or_not(id):
    assert mg.ENVS[id].multi_agent == ("agents" in mg.ENVS[id].options)
    assert (f"magrounding/{id}-v0" in gymnasium.registry) == (not mg.ENVS[id].multi_agent)


def test_importing_is_light():
    heavy = "[m for m in ('torch', 'numba', 'scipy', 'PIL', 'matplotlib') if m in sys.modules]"
    code = f"import sys, magrounding; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize(("id", "options"), [case for case in STAGES if not mg.ENVS[case[0]].multi_agent])
def test_gymnasium(id, options):
    env = gymnasium.make(f"magrounding/{id}-v0", **options, max_cycles=40)
    check_env(env.unwrapped)
    observation, _ = env.reset(seed=4)
    np.testing.assert_equal(observation, _make(id, options).reset(seed=4)[0]["agent_0"])
    twin = pickle.loads(pickle.dumps(env))
    done = False
    while not done:
        action = env.action_space.sample()
        result = env.step(action)
        np.testing.assert_equal(twin.step(action), result)
        done = result[2] or result[3]
    assert result[4]["won"] in (True, False)


def test_gymnasium_vector():
    vec = gymnasium.make_vec("magrounding/rtfm-v0", num_envs=3, vectorization_mode="sync", task="simple")
    observations, _ = vec.reset(seed=0)
    assert observations["grid"].shape == (3, 6, 6, 4)
    assert vec.step(vec.action_space.sample())[1].shape == (3,)
    vec.close()


class TestSuperSuit:
    """The three wrappers of SuperSuit 3.11 that work on Dict observations."""

    @pytest.fixture
    def supersuit(self):
        return pytest.importorskip("supersuit", reason="the extra 'supersuit' is not installed")

    @pytest.fixture
    def env(self):
        return mg.make("ma_rtfm", stage="s3", agents=3, max_cycles=30)

    def test_pad_action_space(self, supersuit, env):
        padded = supersuit.pad_action_space_v0(env)
        np.testing.assert_equal(padded.reset(seed=0)[0], mg.make("ma_rtfm", stage="s3", agents=3).reset(seed=0)[0])
        padded.step({agent: padded.action_space(agent).sample() for agent in padded.agents})

    def test_vec_env(self, supersuit, env):
        vec = supersuit.pettingzoo_env_to_vec_env_v1(env)
        observations, _ = vec.reset(seed=0)
        expected = mg.make("ma_rtfm", stage="s3", agents=3, max_cycles=30).reset(seed=0)[0]
        for key, value in observations.items():
            np.testing.assert_array_equal(value, [expected[agent][key] for agent in env.possible_agents])
        for _ in range(60):  # through the ends of episodes
            _, rewards, terminations, truncations, _ = vec.step(np.zeros(3, int))
            assert rewards.shape == terminations.shape == truncations.shape == (3,)

    def test_concat_vec_envs(self, supersuit, env):
        vec = supersuit.pettingzoo_env_to_vec_env_v1(env)
        vec = supersuit.concat_vec_envs_v1(vec, 2, num_cpus=0, base_class="gymnasium")
        observations, _ = vec.reset(seed=0)
        assert observations["grid"].shape == (6, 8, 8, 4)
        for _ in range(60):
            assert vec.step(np.zeros(6, int))[1].shape == (6,)
        vec.close()
