"""AgileRL itself plays our games: one a process through its own vector env, many through `BatchedVecEnv`."""

import warnings

import numpy as np
import pytest

import magrounding as mg
from magrounding.extensions.clients import for_tensors

pytest.importorskip("agilerl", reason="AgileRL is not installed: make test-clients")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports parts of its own that it has deprecated
    from agilerl.algorithms import IPPO
    from agilerl.vector import AsyncPettingZooVecEnv

from magrounding.extensions.clients.agilerl import BatchedVecEnv

DEADLY = {"stage": "s3", "agents": 3, "death": "individual", "max_cycles": 20}


def one_game():
    return for_tensors(mg.make("ma_rtfm", **DEADLY), flatten=True, dead="padded")


@pytest.fixture
def processes():
    env = AsyncPettingZooVecEnv([one_game for _ in range(2)], context="forkserver")
    yield env
    env.close()


def legal(infos, rng):
    masks = {agent: info["action_mask"] for agent, info in infos.items() if agent[0] != "_"}  # AgileRL adds such keys
    return {agent: np.where(mask, rng.random(mask.shape), -1.0).argmax(-1) for agent, mask in masks.items()}


def test_its_processes_play_to_the_end_though_it_sends_actions_for_the_dead(processes):
    rng = np.random.default_rng(0)
    observations, infos = processes.reset(seed=0)
    ends = padded = 0
    for _ in range(60):
        padded += sum(int((seen == 0).all(-1).sum()) for seen in observations.values())
        observations, rewards, terminations, truncations, infos = processes.step(legal(infos, rng))
        for agent in processes.agents:
            assert np.isfinite(rewards[agent]).all()
            assert infos[agent]["action_mask"].shape == (2, 5)
        ends += int(sum(np.logical_or(terminations[agent], truncations[agent]) for agent in processes.agents).max() > 0)
    assert ends > 2
    assert padded > 2


def test_the_batch_plays_what_its_processes_play(processes):
    batch = BatchedVecEnv(mg.make_vec("ma_rtfm", 2, **DEADLY))
    singles = one_game()
    assert batch.layout == singles.layout
    rng = np.random.default_rng(0)
    mine, theirs = batch.reset(seed=0), processes.reset(seed=0)
    for _ in range(30):
        for agent in batch.agents:
            np.testing.assert_array_equal(mine[0][agent], theirs[0][agent])
            np.testing.assert_array_equal(mine[-1][agent]["action_mask"], theirs[-1][agent]["action_mask"])
        actions = legal(mine[-1], rng)
        mine, theirs = batch.step(actions), processes.step(actions)
        for one, other in zip(mine[1:4], theirs[1:4], strict=True):
            for agent in batch.agents:
                np.testing.assert_array_equal(one[agent], np.asarray(other[agent], one[agent].dtype))


@pytest.mark.filterwarnings("ignore::DeprecationWarning:agilerl")
def test_its_ippo_plays_and_learns():
    env = BatchedVecEnv(mg.make_vec("ma_rtfm", 4, stage="s1", agents=2))
    seen, chosen = env.single_observation_space, env.single_action_space
    agent = IPPO([seen(each) for each in env.agents], [chosen(each) for each in env.agents], agent_ids=env.agents)
    observations, _ = env.reset(seed=0)
    names = "states actions log_probs rewards dones values".split()
    kept = {name: {each: [] for each in env.agents} for name in names}
    done = {each: np.zeros(4) for each in env.agents}
    for _ in range(32):
        actions, log_probs, _, values = agent.get_action(observations)
        before = observations
        observations, rewards, ended, cut, _ = env.step(actions)
        for name, part in zip(names, (before, actions, log_probs, rewards, done, values), strict=True):
            for each in env.agents:
                kept[name][each].append(part[each])
        done = {each: np.logical_or(ended[each], cut[each]).astype(float) for each in env.agents}
    losses = agent.learn((*kept.values(), observations, done))
    assert all(np.isfinite(loss) for loss in losses.values())
