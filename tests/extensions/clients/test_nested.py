"""`nested`, with tianshou's own face for PettingZoo."""

import warnings

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.utils import BaseParallelWrapper, parallel_to_aec

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.extensions.clients.nested import nested
from tests.full import in_the_full_suite

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # PettingZoo's tests import a game of its own
    from pettingzoo.test import parallel_api_test, parallel_seed_test

GAMES = {"ma_rtfm": {"agents": 3, "death": "individual", "max_cycles": 12}, "rtfm": {}, "ma_messenger": {"agents": 2}}


@pytest.mark.parametrize("id", GAMES)
def test_only_observations_change(id):
    env, plain = nested(mg.make(id, **GAMES[id])), mg.make(id, **GAMES[id])
    (seen, infos), (expected, told) = env.reset(seed=4), plain.reset(seed=4)
    rng, steps = np.random.default_rng(0), 0
    for _ in range(60):
        assert env.agents == plain.agents
        assert seen.keys() == expected.keys()
        for agent, view in seen.items():
            assert env.observation_space(agent).contains(view)
            assert list(view) == ["observation", "action_mask"]
            flat = {**view["observation"], "action_mask": view["action_mask"]}
            assert flat.keys() == expected[agent].keys()
            for key, part in flat.items():
                np.testing.assert_array_equal(part, expected[agent][key])
        np.testing.assert_equal(infos, told)
        if not env.agents:
            (seen, infos), (expected, told) = env.reset(), plain.reset()
            continue
        actions = {agent: int(rng.integers(env.action_space(agent).n)) for agent in env.agents}
        seen, *outcome, infos = env.step(actions)
        expected, *wanted, told = plain.step(actions)
        assert outcome == wanted
        steps += 1
    assert steps > 40
    assert type(env.unwrapped) is type(plain.unwrapped)


@pytest.mark.parametrize("key", ["observation", "observations"])
def test_pettingzoo_has_nothing_against_it(key, capsys):
    env = nested(mg.make("ma_rtfm", max_cycles=8), key)
    assert set(env.observation_space("agent_0").spaces) == {key, "action_mask"}
    assert env.observation_space("agent_0") is env.observation_space("agent_0")
    parallel_api_test(env, num_cycles=50)
    parallel_seed_test(lambda: nested(mg.make("ma_rtfm", max_cycles=8), key), num_cycles=20)


class Maskless(BaseParallelWrapper):
    def observation_space(self, agent):
        return spaces.Dict({"grid": self.env.observation_space(agent)["grid"]})


def test_misuse_is_one_sentence():
    with pytest.raises(ConfigurationError):
        nested(parallel_to_aec(mg.make("rtfm")))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError):
        nested(Maskless(mg.make("rtfm")))


@pytest.mark.parametrize("id", GAMES)
def test_tianshous_face_shows_observation_and_mask(id):
    PettingZooEnv = pytest.importorskip("tianshou.env.pettingzoo_env").PettingZooEnv
    env = PettingZooEnv(parallel_to_aec(nested(mg.make(id, **GAMES[id]))))
    rng, plain = np.random.default_rng(1), mg.make(id, **GAMES[id])
    seen, info = env.reset(seed=9)
    expected, _ = plain.reset(seed=9)
    for key, part in seen["obs"].items():
        np.testing.assert_array_equal(part, expected["agent_0"][key])
    ends, outcomes, agents = 0, [], set()
    for _ in range(200):
        agents.add(seen["agent_id"])
        assert isinstance(env.observation_space["observation"], spaces.Dict)
        assert env.observation_space["observation"].contains(seen["obs"])
        seen, _, terminated, truncated, info = env.step(int(rng.choice(np.flatnonzero(seen["mask"]))))
        if terminated or truncated:
            outcomes += [info["won"]] if "won" in info else []  # not where one is out and others play on
            ends += 1
            seen, info = env.reset()
    assert ends > 2
    assert outcomes or id == "ma_rtfm"
    assert agents == set(plain.possible_agents)


@pytest.mark.parametrize("agents", [1, 3])
def test_a_row_of_tianshou_is_one_agents_own_trajectory(agents):
    pytest.importorskip("tianshou")
    from examples.clients.tianshou_several import Seats

    seats, twin = Seats(agents, "eval", 5, games=4), mg.make_vec("ma_rtfm", 4, stage="s1", agents=agents, split="eval")
    (seen, _), (shown, _), rng, ends = seats.reset(), twin.reset(5), np.random.default_rng(0), 0
    for _ in range(100):
        assert seen.agent_id.tolist() == [f"agent_{i}" for i in range(agents)] * 4
        np.testing.assert_array_equal(seen.obs.grid, shown["grid"].reshape(seen.obs.grid.shape))
        actions = (seen.mask * rng.random(seen.mask.shape)).argmax(1)
        seen, rewards, ended, _, _ = seats.step(actions)
        shown, paid, _, _, info = twin.step(actions.reshape(4, agents))
        np.testing.assert_array_equal(ended.reshape(4, agents), np.repeat(info.done[:, None], agents, 1))
        np.testing.assert_allclose(
            rewards.reshape(4, agents, agents).mean(2), np.repeat(paid.mean(1), agents).reshape(4, -1)
        )
        last = info.final_observation["grid"]
        np.testing.assert_array_equal(seen.obs.grid[ended], last.reshape(-1, *last.shape[2:]))
        ends += info.done.sum()
        rows = np.flatnonzero(ended)
        seen[rows], _ = seats.reset(rows)
    assert ends > 3


@in_the_full_suite("four core minutes")
def test_agents_learn_by_tianshou(monkeypatch):
    pytest.importorskip("tianshou")
    import torch

    from examples.clients import tianshou_several

    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  tianshou draws minibatches from it
    learnt = tianshou_several.learner(2)
    tianshou_several.train(learnt, 2, 130_000, seed=0)
    assert tianshou_several.win_rate(learnt, 2) > 0.6
    assert tianshou_several.win_rate(None, 2) < 0.1


def test_rllibs_face_shows_observations_and_mask():
    """No cluster is started for it."""
    wrapper = pytest.importorskip("ray.rllib.env.wrappers.pettingzoo_env")
    env = wrapper.ParallelPettingZooEnv(nested(mg.make("ma_rtfm", max_cycles=8), "observations"))
    rng, ends = np.random.default_rng(0), 0
    seen, _ = env.reset(seed=3)
    for _ in range(40):
        for agent, view in seen.items():
            assert env.observation_space[agent].contains(view)
        actions = {agent: int(rng.choice(np.flatnonzero(view["action_mask"]))) for agent, view in seen.items()}
        seen, _, terminated, truncated, _ = env.step(actions)
        if terminated["__all__"] or truncated["__all__"]:
            ends += 1
            seen, _ = env.reset()
    assert ends > 3
