"""What `for_tensors` promises, on our worlds, with nothing but what is installed anyway."""

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import ParallelEnv

import magrounding as mg
from examples.my_game.my_game.env import MyGame
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.extensions.clients import for_tensors, unflatten
from magrounding.spec import SCORES
from tests.simulators.games import Walk

with warnings.catch_warnings():
    # PettingZoo's test package imports its own example environments by a route that it has itself deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test

ROOT = Path(__file__).parents[3]
WORLDS = {
    "ma_rtfm": {"stage": "s1", "agents": 3, "max_cycles": 12},
    "ma_messenger": {"stage": "s3", "agents": 2},
    "rtfm": {"task": "simple", "max_cycles": 12},
}
DEADLY = {"stage": "s3", "agents": 3, "death": "individual", "max_cycles": 30}


def legal(env, observations, infos, rng):
    """A legal action for each agent; the mask lies where the env put it."""
    masks = {agent: infos[agent].get("action_mask") for agent in env.agents}
    for agent in env.agents:
        if masks[agent] is None:
            seen = observations[agent]
            masks[agent] = (unflatten(seen, env.layout) if env.layout else seen)["action_mask"]
    return {agent: int(rng.choice(np.flatnonzero(mask))) for agent, mask in masks.items()}


def games(env, count, seed=0):
    """Every (observations, rewards, terminations, truncations, infos) of some games of random legal play."""
    rng = np.random.default_rng(seed)
    for game in range(count):
        observations, infos = env.reset(seed=seed + game)
        yield observations, {}, {}, {}, infos
        while env.agents:
            step = env.step(legal(env, observations, infos, rng))
            observations, infos = step[0], step[-1]
            yield step


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("mask", ["info", "observation"])
@pytest.mark.parametrize("id", WORLDS)
def test_observations_lie_in_their_space_and_infos_never_change_their_shape(id, mask, flatten):
    env = for_tensors(mg.make(id, **WORLDS[id]), mask=mask, flatten=flatten)
    shapes = set()
    for observations, _, _, _, infos in games(env, 5):
        for agent, seen in observations.items():
            assert env.observation_space(agent).contains(seen)
            info = {name: np.asarray(value) for name, value in infos[agent].items()}
            assert all(value.dtype.kind in "fi" for value in info.values())
            shapes.add(tuple((name, value.shape, value.dtype) for name, value in info.items()))
    assert len(shapes) == 1
    assert ("action_mask" in {name for name, *_ in shapes.pop()}) == (mask == "info")


@pytest.mark.parametrize("id", WORLDS)
def test_a_flat_observation_has_every_field_where_the_layout_says(id):
    plain, flat = mg.make(id, **WORLDS[id]), for_tensors(mg.make(id, **WORLDS[id]), mask="observation", flatten=True)
    seen, _ = plain.reset(seed=5)
    shown, _ = flat.reset(seed=5)
    for agent in plain.agents:
        parts = unflatten(shown[agent], flat.layout)
        assert parts.keys() == seen[agent].keys() - {"distance"} == {field.name for field in plain.spec.fields}
        for name, part in parts.items():
            np.testing.assert_array_equal(part, seen[agent][name])
        assert shown[agent].dtype == np.float32
        assert shown[agent].size == sum(part.size for part in parts.values())


def test_absent_agents_are_as_before_and_padded_ones_stay_until_the_end():
    died = 0
    for seed in range(30):
        plain = mg.make("ma_rtfm", **DEADLY)
        absent, padded = (for_tensors(mg.make("ma_rtfm", **DEADLY), dead=dead) for dead in ("absent", "padded"))
        rng = np.random.default_rng(seed)
        for env in (plain, absent, padded):
            observations, infos = env.reset(seed=seed)
        while plain.agents:
            assert absent.agents == plain.agents
            assert padded.agents == padded.possible_agents
            living = plain.agents
            actions = legal(padded, observations, infos, rng)
            assert all(actions[agent] == 0 for agent in set(padded.agents) - set(living))
            wild = {agent: actions[agent] if agent in living else 10**6 for agent in padded.agents}
            alive = {agent: actions[agent] for agent in living}
            seen, rewards, terminations, truncations, told = plain.step(alive)
            assert absent.step(alive)[1:4] == (rewards, terminations, truncations)
            observations, paid, ended, cut, infos = padded.step(wild)
            assert list(observations) == list(paid) == list(ended) == list(cut) == list(infos) == padded.possible_agents
            assert paid == {agent: rewards.get(agent, 0.0) for agent in padded.possible_agents}
            over = not plain.agents
            for agent in padded.possible_agents:
                assert padded.observation_space(agent).contains(observations[agent])
                out = agent not in plain.agents and not (over and agent in living)
                if out:
                    died += 1
                    assert not any(part.any() for part in observations[agent].values())
                    assert infos[agent]["action_mask"].tolist() == [1, 0, 0, 0, 0]
                    assert (ended[agent], cut[agent]) == (over, False)
                else:
                    np.testing.assert_array_equal(observations[agent]["grid"], seen[agent]["grid"])
                    assert (ended[agent], cut[agent]) == (terminations[agent], truncations[agent])
                if over:
                    assert infos[agent]["won"] == next(iter(told.values()))["won"]
        assert padded.agents == []
        assert padded.step({}) == ({}, {}, {}, {}, {})
    assert died > 30


def test_actions_of_the_dead_may_be_missing_and_those_of_the_living_may_not():
    env = for_tensors(mg.make("ma_rtfm", **DEADLY), dead="padded")
    for seed in range(50):
        _, infos = env.reset(seed=seed)
        while env.agents and all(info["action_mask"][1:].any() for info in infos.values()):
            *_, infos = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        if env.agents:
            break
    dead = [agent for agent, info in infos.items() if not info["action_mask"][1:].any()]
    assert 0 < len(dead) < 3
    with pytest.raises(InvalidAction):
        env.step(dict.fromkeys(dead, 0))
    env.step({agent: 0 for agent in env.agents if agent not in dead})


@pytest.mark.parametrize("dead", ["absent", "padded"])
@pytest.mark.parametrize("flatten", [False, True])
def test_pettingzoo_approves(dead, flatten, capsys):
    env = for_tensors(mg.make("ma_rtfm", **DEADLY), mask="info", flatten=flatten, dead=dead)
    parallel_api_test(env, num_cycles=200)
    capsys.readouterr()


def test_anybodys_game_with_our_spec():
    env = for_tensors(MyGame(), flatten=True)
    observations, infos = env.reset(seed=0)
    assert observations["agent_0"].shape == (13,)
    assert infos["agent_0"].keys() == {"won", "illegal", "action_mask"}
    *_, infos = env.step({"agent_0": 0, "agent_1": 1})
    assert infos["agent_0"]["won"] in (0, 1)
    assert env.spec.vocabulary.decode(unflatten(observations["agent_0"], env.layout)["patient"].astype(int).tolist())


class Scored(MyGame):
    """A game of three steps that tells the score so far after each of them, as simulators do."""

    def __init__(self):
        super().__init__()
        self.spec = replace(self.spec, capabilities=frozenset({SCORES}), max_cycles=3)

    def reset(self, seed=None, options=None):
        observations, _ = super().reset(seed, options)
        self.score = 5
        return observations, {agent: {"score": 5} for agent in self.agents}

    def step(self, actions):
        acting = self.agents
        observations, rewards, ended, cut, infos = super().step(actions)
        self.score += 1
        if self.score < 8:
            self.agents, ended = acting, dict.fromkeys(acting, False)
        return observations, rewards, ended, cut, {agent: {**infos[agent], "score": self.score} for agent in acting}


def test_who_is_out_observes_zeros_in_spaces_of_any_kind():
    class Rooms(Walk):
        def __init__(self):
            super().__init__()
            parts = {"room": spaces.Discrete(3, start=1), "bits": spaces.MultiBinary(2), **self.space.spaces}
            self.space = spaces.Dict({**parts, "pair": spaces.MultiDiscrete([4, 5])})

        def _see(self):
            observations, infos = super()._see()
            more = {"room": np.int64(3), "bits": np.ones(2, np.int8), "pair": np.array([3, 4])}
            return {agent: {**seen, **more} for agent, seen in observations.items()}, infos

    env = for_tensors(Rooms(), mask="observation", dead="padded")
    env.reset(seed=0)
    out = 0
    while env.agents:
        observations = env.step(dict.fromkeys(env.agents, 1))[0]
        for agent, seen in observations.items():
            assert all(env.observation_space(agent)[name].contains(seen[name]) for name in ("room", "bits", "pair"))
            if agent not in env.env.agents and env.agents:
                assert (seen["room"], *seen["bits"], *seen["pair"]) == (1, 0, 0, 0, 0)  # 0 is no room
                out += 1
    assert out


def test_a_score_is_told_at_the_end_alone():
    env = for_tensors(Scored())
    told = [[info["score"] for info in step[-1].values()] for step in games(env, 1)]
    assert told == [[0, 0], [0, 0], [0, 0], [8, 8]]


def test_it_pickles_and_the_copy_plays_the_same():
    env = for_tensors(mg.make("ma_rtfm", **DEADLY), flatten=True, dead="padded")
    copy = pickle.loads(pickle.dumps(env))
    for (seen, *rest), (shown, *others) in zip(games(env, 2), games(copy, 2), strict=True):
        np.testing.assert_equal(seen, shown)
        np.testing.assert_equal(rest, others)


class Bare(ParallelEnv):
    """A game that shows no action mask."""

    metadata = {"name": "bare"}  # noqa: RUF012
    possible_agents = ["agent_0"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Box(0.0, 1.0, (3,))

    def action_space(self, agent):
        return spaces.Discrete(2)


class Late(Bare):
    """A game that agent_1 joins after a step."""

    possible_agents = ["agent_0", "agent_1"]  # noqa: RUF012

    def observation_space(self, agent):
        return spaces.Dict({"action_mask": spaces.Box(0, 1, (2,), np.int8), "seen": spaces.Box(0.0, 1.0, (3,))})

    def reset(self, seed=None, options=None):
        self.agents, self.steps = self.possible_agents[:1], 0
        return self.look(), {agent: {} for agent in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.agents, self.steps = self.possible_agents[:], self.steps + 1
        seen, over = self.look(), self.steps == 3
        self.agents = [] if over else self.agents
        infos = {agent: {"won": over} for agent in seen}
        return seen, dict.fromkeys(seen, 1.0), dict.fromkeys(seen, over), dict.fromkeys(seen, False), infos

    def look(self):
        return {agent: {"action_mask": np.ones(2, np.int8), "seen": np.ones(3, np.float32)} for agent in self.agents}


@pytest.mark.parametrize(("dead", "seen"), [("absent", [1, 2, 2, 2]), ("padded", [2, 2, 2, 2])])
@pytest.mark.parametrize("mask", ["info", "observation"])
def test_an_agent_that_joins_late_is_seen_from_its_first_step_or_padded_before(mask, dead, seen):
    env = for_tensors(Late(), mask=mask, dead=dead)
    played = [(step[0], step[-1], env.agents) for step in games(env, 1)]
    assert [len(observations) for observations, _, _ in played] == seen
    assert all(set(agents) <= set(observations) == set(infos) for observations, infos, agents in played)
    if dead == "padded":
        observations, infos, _ = played[0]
        where = infos if mask == "info" else observations
        assert where["agent_1"]["action_mask"].tolist() == [1, 0]
        assert not observations["agent_1"]["seen"].any()


class Silent(Late):
    """The same game, where agent_1 joins with nothing but what it sees, and leaves with all but that."""

    def step(self, actions):
        seen, rewards, ended, cut, infos = super().step(actions)
        if self.steps == 1:
            for part in (rewards, ended, cut, infos):
                del part["agent_1"]
        else:
            self.agents = self.agents[:1]
            del seen["agent_1"]
            ended["agent_1"] = True
        return seen, rewards, ended, cut, infos


@pytest.mark.parametrize("dead", ["absent", "padded"])
@pytest.mark.parametrize("mask", ["info", "observation"])
def test_what_an_env_leaves_out_of_who_joins_or_leaves_is_nothing(mask, dead):
    env = for_tensors(Silent(), mask=mask, dead=dead)
    env.reset(seed=0)
    joined, left = (env.step(dict.fromkeys(env.agents, 0)) for _ in range(2))
    assert [part["agent_1"] for part in joined[1:4]] == [0.0, False, False]
    assert joined[0]["agent_1"]["seen"].all()
    assert [part["agent_1"] for part in left[1:4]] == [1.0, dead == "absent", False]
    assert not left[0]["agent_1"]["seen"].any()
    assert all(part.keys() == {"agent_0", "agent_1"} for part in (*joined, *left))


def test_what_cannot_be_is_refused_in_a_sentence():
    env = mg.make("ma_rtfm")
    with pytest.raises(ConfigurationError):
        for_tensors(env, mask="both")
    with pytest.raises(ConfigurationError):
        for_tensors(env, dead="gone")
    with pytest.raises(ConfigurationError):
        for_tensors(Bare())


def test_importing_the_adapters_imports_no_client():
    heavy = ("torch", "torchrl", "tensordict", "benchmarl", "agilerl", "tianshou", "stable_baselines3", "ray")
    code = f"import sys, magrounding.extensions.clients; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).strip() == "[]"


def test_importing_and_playing_need_no_registry_of_pettingzoo():
    """As on PettingZoo 1.26, where `make test-clients` tries it for real."""
    code = (
        "import pettingzoo\n"
        "for name in ('register', 'parallel_registry'): vars(pettingzoo).pop(name, None)\n"
        "import magrounding as mg\n"
        "env = mg.make('ma_rtfm'); env.reset(seed=0); print(env.agents)"
    )
    shown = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True)
    assert shown.strip() == "['agent_0', 'agent_1']"
