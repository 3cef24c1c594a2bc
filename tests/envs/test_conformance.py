"""Every registered environment, stage and kind of option, against every conformance test there is."""

from __future__ import annotations

import pickle
import warnings
from functools import partial
from importlib.util import find_spec
from shutil import which
from typing import Any

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from pettingzoo.utils import parallel_to_aec

import magrounding as mg
from magrounding.builtin import register_builtin
from magrounding.envs.checks import check_parallel_env
from magrounding.envs.single_agent import SingleAgentEnv
from magrounding.errors import ConfigurationError
from magrounding.spec import STATE
from tests.full import in_full

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
    "left_items": {"drop_mode": "left"},
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
    "valid": {"split": "valid"},
    "fast_view": {"fast_view": True, "max_cycles": 70},
    "minigrids_view": {"fast_view": False, "max_cycles": 70},
    "manual_stop": {"manual_stop": True},
    "split": {"stage": "s5", "reading": "kind", "talk": 1},
    "librarian": {"stage": "s2g", "reading": "librarian", "agents": 3, "tells": 2, "heard": "none"},
    "turned": {"turned": True, "patch": 4},
    "all_planes": {"characters": True, "colours": True, "thresholds": "new", "max_cycles": 60},
}
PLAYED = {
    "ma_rtfm": ("s1", "s2", "s2g", "s3", "s4", "s5", "s6"),
    "babyai": ("GoToLocal", "SynthLoc"),
    "scienceworld": ("find-plant", "lifespan-shortest-lived"),
    "nethack": ("silg", "staircase_pet", "eat"),
}
"""The stages that are played, the hardest last, of worlds that have them in another order, or have many that are alike
in all that is checked here; of the others, all."""
SLOW, SLOW_VARIANTS = in_full(((), ()), (("touchdown", "nethack"), ("valid", "test")))
"""Worlds whose games take seconds: in brief, a few steps are played of each, and `train` alone of their splits."""
NEEDS = {"babyai": "minigrid", "alfworld": "alfworld", "scienceworld": "scienceworld", "nethack": "nle"}
"""The module that an id's simulator is, where it comes with an extra."""
PROGRAMS = {"scienceworld": "java"}
"""And the program that it needs."""
NOOPS = {"alfworld": None, "scienceworld": None, "touchdown": None}
"""The action that a masked one is the same as; None where each does something and a masked one nothing."""


def _stages(id: str) -> tuple[str, ...]:
    return PLAYED.get(id, mg.ENVS[id].stages)


def _case(id: str, *values: Any, name: str = "") -> Any:
    """A parameter set that is skipped, by name, where the id's simulator is not installed."""
    needed = {NEEDS.get(id): find_spec, PROGRAMS.get(id): which}
    absent = [name for name, find in needed.items() if name and find(name) is None]
    marks = [pytest.mark.skipif(bool(absent), reason=f"{id} needs {', '.join(absent)}, which is not installed")]
    return pytest.param(id, *values, id=name or id, marks=marks)


def _each_stage(ids: list[str]) -> list[Any]:
    found = [(id, mg.ENVS[id].with_stage(stage)) for id in ids for stage in _stages(id)]
    return [_case(id, options, name="-".join([id, *options.values()])) for id, options in found]


def _last_stage(ids: list[str]) -> list[Any]:
    return [_case(id, mg.ENVS[id].with_stage(_stages(id)[-1])) for id in ids]


IDS = list(mg.ENVS)
FOR_ONE = [id for id in IDS if not mg.ENVS[id].multi_agent]
FOR_MANY = [id for id in IDS if mg.ENVS[id].multi_agent]
STAGES = _each_stage(IDS)
HARDEST = in_full(STAGES, _last_stage(IDS))
"""Stages played through other people's faces: in brief, one of each id, whose other stages are the same class."""


def _cases() -> list[Any]:
    """Each stage by itself, and each option with the hardest stage of every id that has it (in full, the easiest)."""
    cases = list(STAGES)
    for id, entry in mg.ENVS.items():
        for name, variant in VARIANTS.items():
            unknown = variant.keys() - entry.options.keys()
            splits = {options["split"] for options in entry.evaluation.sets.values()}
            if unknown or variant.get("split", "train") not in splits:
                continue
            if id in SLOW and name in SLOW_VARIANTS:
                continue
            for stage in dict.fromkeys(in_full((_stages(id)[0], _stages(id)[-1]), _stages(id)[-1:])):
                options = {**entry.with_stage(stage), **variant}
                cases.append(_case(id, options, name=f"{id}-{stage}-{name}"))
    return cases


def _make(id: str, options: dict[str, Any], **more: Any) -> pettingzoo.ParallelEnv:
    return mg.make(id, **{"max_cycles": 12 if id in SLOW else 40, **options}, **more)


@pytest.mark.parametrize(("id", "options"), _cases())
def test_our_own_check(id, options):
    check_parallel_env(lambda: _make(id, options), seeds=range(in_full(3, 2)), noop=NOOPS.get(id, 0))


@pytest.mark.parametrize(("id", "options"), HARDEST)
def test_pettingzoo_parallel(id, options, capsys):
    parallel_api_test(_make(id, options), num_cycles=200)
    parallel_seed_test(lambda: _make(id, options), num_cycles=100)
    assert "Passed Parallel API test" in capsys.readouterr().out


# api_test expects flat arrays, warns of a Dict and does not require anything else.
@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning")
@pytest.mark.parametrize(("id", "options"), HARDEST)
def test_pettingzoo_aec(id, options, capsys):
    api_test(parallel_to_aec(_make(id, options)), num_cycles=60)
    seed_test(lambda: parallel_to_aec(_make(id, options)), num_cycles=100)
    if STATE in mg.ENVS[id].describe(**options).capabilities:
        state_test(parallel_to_aec(_make(id, options)), _make(id, options))
    assert "Passed API test" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:Observation is not a NumPy array:UserWarning")
@pytest.mark.filterwarnings("ignore:Observation space for each agent probably should be:UserWarning")
def test_pettingzoo_aec_through_deaths():
    options = {"stage": "s3", "agents": 3, "death": "individual"}
    parallel_api_test(_make("ma_rtfm", options), num_cycles=200)
    api_test(parallel_to_aec(_make("ma_rtfm", options)), num_cycles=200)


@pytest.mark.parametrize(("id", "options"), HARDEST)
def test_pickles_of_every_face_go_on_alike(id, options):
    """The env by itself is in our own check; here it is inside PettingZoo's face of turns."""
    env = parallel_to_aec(_make(id, options))
    env.reset(seed=5)
    env.step(env.action_space(env.agent_selection).sample())
    twin = pickle.loads(pickle.dumps(env))
    while env.agents:
        assert twin.agents == env.agents
        assert twin.agent_selection == env.agent_selection
        np.testing.assert_equal(twin.last(), env.last())
        over = env.terminations[env.agent_selection] or env.truncations[env.agent_selection]
        action = None if over else env.action_space(env.agent_selection).sample()
        env.step(action)
        twin.step(action)
    assert not twin.agents


@pytest.mark.skipif(not hasattr(pettingzoo, "parallel_registry"), reason="PettingZoo 1.26 has no registry")
@pytest.mark.parametrize(("id", "stage"), _last_stage(IDS))
def test_pettingzoo_registry(id, stage):
    env = pettingzoo.make(
        "parallel", f"magrounding/{mg.ENVS[id].versioned_id}", **stage, render_mode="ansi", max_cycles=7
    )
    assert type(env) is type(mg.make(id, **stage))
    assert (env.id, env.render_mode, env.spec.max_cycles) == (id, "ansi", 7)
    assert env.metadata["name"] == str(env) == mg.ENVS[id].versioned_id
    ours, theirs = _make(id, stage).reset(seed=3)[0], env.reset(seed=3)[0]
    np.testing.assert_equal(theirs, ours)


def test_registering_twice_is_quiet():
    register_builtin()  # PettingZoo would warn of an overridden id, and warnings are errors here


@pytest.mark.parametrize(("id", "options"), in_full(_each_stage(FOR_ONE), _last_stage(FOR_ONE)))
def test_gymnasium(id, options):
    env = gymnasium.make(f"magrounding/{mg.ENVS[id].versioned_id}", **options, max_cycles=40)
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


@pytest.mark.parametrize(("id", "stage"), _last_stage(FOR_MANY))
def test_a_team_of_one_is_a_gymnasium_env_too(id, stage):
    check_env(SingleAgentEnv(_make(id, stage, agents=1)), skip_render_check=True)
    assert gymnasium.make(f"magrounding/{mg.ENVS[id].versioned_id}", **stage, agents=1).spec is not None
    with pytest.raises(ConfigurationError):
        gymnasium.make(f"magrounding/{mg.ENVS[id].versioned_id}", **stage)


@pytest.mark.parametrize(("id", "stage"), _last_stage(FOR_ONE))
class TestGymnasiumWrappers:
    """What users wrap an env of Gymnasium in."""

    @pytest.fixture
    def env(self, id, stage):
        return gymnasium.make(f"magrounding/{mg.ENVS[id].versioned_id}", **stage, max_cycles=20)

    def play(self, env):
        """The results of one episode by one sequence of actions, every observation in its space."""
        results = [env.reset(seed=2)]
        rng = np.random.default_rng(0)
        while len(results) == 1 or not (results[-1][2] or results[-1][3]):
            results.append(env.step(int(rng.integers(env.action_space.n))))
        assert all(env.observation_space.contains(result[0]) for result in results)
        return results

    def test_limit(self, env):
        plain = self.play(env)
        steps = len(plain) - 2  # one less than the episode has
        assert steps > 0
        limited = self.play(wrappers.TimeLimit(env, steps))
        assert limited[-1][2:4] == (False, True)
        np.testing.assert_equal([result[0] for result in limited], [result[0] for result in plain[: 1 + steps]])

    def test_statistics(self, env):
        results = self.play(wrappers.RecordEpisodeStatistics(env))
        statistics = results[-1][4]["episode"]
        assert statistics["l"] == len(results) - 1
        assert statistics["r"] == pytest.approx(sum(result[1] for result in results[1:]))

    def test_flattened(self, env):
        flat, plain = self.play(wrappers.FlattenObservation(env)), self.play(env)
        for (row, *_), (observation, *_) in zip(flat, plain, strict=True):
            np.testing.assert_array_equal(row, gymnasium.spaces.flatten(env.observation_space, observation))

    def test_filtered_and_transformed(self, env):
        name = env.unwrapped.env.spec.fields[0].name
        kept = self.play(wrappers.FilterObservation(env, ["action_mask", name]))
        parts = self.play(wrappers.TransformObservation(env, lambda seen: seen[name], env.observation_space[name]))
        for (few, *_), (part, *_), (observation, *_) in zip(kept, parts, self.play(env), strict=True):
            np.testing.assert_equal(few, {key: observation[key] for key in ("action_mask", name)})
            np.testing.assert_array_equal(part, observation[name])


@pytest.mark.parametrize(("id", "stage"), _last_stage(in_full(FOR_ONE, ["rtfm", "babyai"])))
def test_gymnasium_vectors_of_processes(id, stage):
    # Processes import the package by the first half of the name. They are not forked: this one has threads.
    make = partial(gymnasium.make, f"magrounding:magrounding/{mg.ENVS[id].versioned_id}", **stage, max_cycles=6)
    together, apart = SyncVectorEnv([make] * 2), AsyncVectorEnv([make] * 2, context="forkserver")
    try:
        first, _ = apart.reset(seed=3)
        np.testing.assert_equal(first, together.reset(seed=3)[0])
        for i, seed in enumerate((3, 4)):
            alone, _ = make().reset(seed=seed)
            np.testing.assert_equal({key: rows[i] for key, rows in first.items()}, alone)
        apart.action_space.seed(0)
        for _ in range(20):  # through the ends of episodes
            actions = apart.action_space.sample()
            np.testing.assert_equal(apart.step(actions), together.step(actions))
    finally:
        apart.close()
        together.close()


def test_gymnasium_vector():
    vec = gymnasium.make_vec("magrounding/rtfm-v1", num_envs=3, vectorization_mode="sync", task="simple")
    observations, _ = vec.reset(seed=0)
    assert observations["grid"].shape == (3, 6, 6, 4)
    assert vec.step(vec.action_space.sample())[1].shape == (3,)
    vec.close()


@pytest.mark.parametrize(("id", "stage"), _last_stage(IDS))
class TestSuperSuit:
    """The three wrappers of SuperSuit 3.11 that work on Dict observations."""

    @pytest.fixture
    def supersuit(self):
        return pytest.importorskip("supersuit", reason="the extra 'supersuit' is not installed")

    @pytest.fixture
    def env(self, id, stage):
        return mg.make(id, **stage, **({"agents": 3} if mg.ENVS[id].multi_agent else {}), max_cycles=15)

    @pytest.fixture
    def first(self, env):
        """The first observation of seed 0 of each key, stacked over agents."""
        seen, _ = pickle.loads(pickle.dumps(env)).reset(seed=0)
        keys = env.observation_space("agent_0").spaces
        return {key: np.stack([seen[agent][key] for agent in env.possible_agents]) for key in keys}

    def test_pad_action_space(self, supersuit, env, first):
        padded = supersuit.pad_action_space_v0(env)
        observations, _ = padded.reset(seed=0)
        np.testing.assert_equal(
            {key: [seen[key] for seen in observations.values()] for key in first},
            {key: list(rows) for key, rows in first.items()},
        )
        padded.step({agent: padded.action_space(agent).sample() for agent in padded.agents})

    def test_vec_env(self, supersuit, env, first):
        vec = supersuit.pettingzoo_env_to_vec_env_v1(env)
        np.testing.assert_equal(dict(vec.reset(seed=0)[0]), first)
        count, ended = len(env.possible_agents), 0
        for _ in range(40):  # through the ends of episodes
            _, rewards, terminations, truncations, _ = vec.step(np.zeros(count, int))
            assert rewards.shape == terminations.shape == truncations.shape == (count,)
            ended += int((terminations | truncations).all())
        assert ended >= 2

    def test_concat_vec_envs(self, supersuit, env, first):
        vec = supersuit.pettingzoo_env_to_vec_env_v1(env)
        vec = supersuit.concat_vec_envs_v1(vec, 2, num_cpus=0, base_class="gymnasium")
        observations, _ = vec.reset(seed=0)
        count = len(env.possible_agents)
        np.testing.assert_equal({key: rows[:count] for key, rows in observations.items()}, first)
        assert any((rows[:count] != rows[count:]).any() for rows in observations.values()), "both play one game"
        for _ in range(40):
            assert vec.step(np.zeros(2 * count, int))[1].shape == (2 * count,)
        vec.close()
