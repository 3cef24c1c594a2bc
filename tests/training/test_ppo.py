"""PPO learns what it should, clips what it should, and depends on nothing but its trajectory and the step."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from magrounding.agents.building import freeze
from magrounding.errors import ConfigurationError
from magrounding.training.ppo import PPOConfig, PPOLearner
from tests.training.toy_games import ToyGames, ToyPolicy, check_reading_is_learnt, collect

CONFIG = PPOConfig(unroll=8, epochs=2, minibatches=2, learning_rate=0.02, warm_up=1, anneal_steps=1e9)


def updated(policy, rollout, config=CONFIG, steps=100):
    learner = PPOLearner(copy.deepcopy(policy), config)
    report = learner.update(rollout.trajectories[0], steps)
    return torch.cat([p.detach().flatten() for p in learner.policy.parameters()]), report


def test_it_learns_to_read():
    check_reading_is_learnt(CONFIG, updates=80)


def test_the_dead_teach_nothing(policy):
    rollout = collect(ToyGames(num_envs=16, end=0.02), [policy, ToyPolicy()])
    trajectory = rollout.trajectories[0]
    assert not trajectory.alive.all()
    before, _ = updated(policy, rollout)
    trajectory.reward[~trajectory.alive] = 100
    trajectory.logits[~trajectory.alive] = 3
    after, _ = updated(policy, rollout)
    assert torch.equal(before, after)


def test_the_first_step_is_the_policy_gradient_of_normalised_advantages(policy):
    """With one epoch and one minibatch every ratio is 1, and the surrogate's gradient is that of −log π · A."""
    rollout = collect(ToyGames(num_envs=8), [policy, ToyPolicy()])
    config = replace(CONFIG, epochs=1, minibatches=1, value_coefficient=0.0, entropy=0.0, final_entropy=0.0)
    learner = PPOLearner(copy.deepcopy(policy), config)
    trajectory, games = rollout.trajectories[0], np.arange(8)
    target, advantage, log_mu = learner.estimates(trajectory.on("cpu"))
    alive = torch.from_numpy(trajectory.alive)
    assert float(advantage[alive].mean()) == pytest.approx(0, abs=1e-5)
    assert float(advantage[alive].std()) == pytest.approx(1, abs=1e-4)
    losses = learner.losses(trajectory.games(games), target, advantage, log_mu)
    parameters = list(learner.policy.parameters())
    ours = torch.autograd.grad(losses["policy_loss"], parameters, allow_unused=True)
    now = learner.reevaluate(trajectory.games(games))
    log_pi = now.logits.log_softmax(-1).gather(-1, torch.from_numpy(trajectory.action)[..., None]).squeeze(-1)
    plain = torch.autograd.grad(-(log_pi * advantage)[alive].mean(), parameters, allow_unused=True)
    for a, b in zip(ours, plain, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_a_ratio_beyond_the_clip_has_no_gradient(policy):
    rollout = collect(ToyGames(num_envs=4), [policy, ToyPolicy()])
    learner = PPOLearner(policy, CONFIG)
    trajectory, games = rollout.trajectories[0], np.arange(4)
    target, advantage, log_mu = learner.estimates(trajectory.on("cpu"))
    gain = torch.ones_like(advantage)
    losses = learner.losses(trajectory.games(games), target, gain, log_mu - 1.0)  # ratio e > 1.2
    assert losses["policy_loss"].item() == pytest.approx(-1.2, abs=1e-5)
    gradient = torch.autograd.grad(losses["policy_loss"], list(policy.parameters()), allow_unused=True)
    assert all(g is None or not g.any() for g in gradient)


def test_team_reward_mixes_own_and_mean_of_the_living():
    policies = [ToyPolicy(), ToyPolicy()]
    own = collect(ToyGames(num_envs=16, end=0.05), policies)
    mixed = collect(ToyGames(num_envs=16, end=0.05), policies, team_reward=0.5)
    alive = np.stack([trajectory.alive for trajectory in own.trajectories])
    reward = np.stack([trajectory.reward for trajectory in own.trajectories])
    mean = (reward * alive).sum(0) / np.maximum(alive.sum(0), 1)
    expected = np.where(alive, 0.5 * reward + 0.5 * mean, 0)
    np.testing.assert_allclose(np.stack([trajectory.reward for trajectory in mixed.trajectories]), expected, atol=1e-6)


@pytest.mark.parametrize("recurrent", [False, True])
def test_segments_are_the_same_steps_and_begin_with_the_memory_of_acting(recurrent):
    torch.manual_seed(0)
    policy = ToyPolicy(recurrent)
    vec = ToyGames(num_envs=6, end=0.0, time_limit_is_loss=False, max_cycles=3)
    cut, learner = collect(vec, [policy, ToyPolicy(recurrent)], unroll=8, skip=1, segment=4), PPOLearner(policy, CONFIG)
    trajectory = cut.trajectories[0]
    assert len(trajectory.truncations) > 0
    uncut = replace(trajectory, segments=1, memory=trajectory.memory[:6] if recurrent else None)
    whole, parts = learner.reevaluate(uncut.games()), learner.reevaluate(trajectory.games())
    for name in ("logits", "value", "next_value"):
        torch.testing.assert_close(getattr(parts, name), torch.cat(getattr(whole, name).chunk(2), 1))
    for one, other in zip(learner.estimates(uncut.on("cpu")), learner.estimates(trajectory.on("cpu")), strict=True):
        torch.testing.assert_close(one, other)
    some = trajectory.games(np.array([7, 1, 11]))  # of game 1 the second half, then the first
    np.testing.assert_array_equal(some.reward[:, :2], np.stack((trajectory.reward[4:, 1], trajectory.reward[:4, 1]), 1))
    now = learner.reevaluate(some)
    torch.testing.assert_close(now.next_value, parts.next_value[:, [7, 1, 11]])
    if recurrent:  # what the second half says teaches nothing about how the first is remembered
        assert not some.inputs.memory.requires_grad
        joined = cut.joined()[0]
        for i, each in enumerate(cut.trajectories):
            for part in range(2):
                own, beside = (m.unflatten(0, (2, -1))[part] for m in (each.memory, joined.memory))
                assert torch.equal(beside[6 * i : 6 * i + 6], own)


def test_an_update_in_segments_learns_from_every_step(policy):
    one, policies = replace(CONFIG, minibatches=1, epochs=1), [policy, ToyPolicy()]
    whole, cut = (
        updated(policy, collect(ToyGames(num_envs=8), policies, segment=segment), one)[0] for segment in (0, 4)
    )
    torch.testing.assert_close(whole, cut, rtol=1e-4, atol=1e-5)  # without a memory nothing is cut off
    with pytest.raises(ConfigurationError):
        collect(ToyGames(num_envs=8), [policy, ToyPolicy()], segment=3)


def test_what_is_frozen_does_not_learn(policy):
    rollout = collect(ToyGames(num_envs=8), [policy, ToyPolicy()])
    names = [name for name, _ in policy.named_parameters()]
    freeze(policy, names[:1])
    learner = PPOLearner(policy, CONFIG)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    learner.update(rollout.trajectories[0], 100)
    same = {name for name, tensor in policy.state_dict().items() if torch.equal(tensor, before[name])}
    assert same == {names[0], "carry.weight", "carry.bias"}  # a memory that this policy does not use
    with pytest.raises(ConfigurationError):
        freeze(policy, ["nose"])


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({}, 0.01, 0.001),
        ({"entropy": 0.0}, 0.0, 0.0),
        ({"entropy": 0.0004}, 0.0004, 0.0004),
        ({"entropy": 0.0, "final_entropy": 0.02}, 0.0, 0.02),
        ({"entropy": 0.05, "final_entropy": 0.0}, 0.05, 0.0),
    ],
)
def test_a_bonus_of_nothing_stays_nothing(policy, options, first, last):
    learner = PPOLearner(policy, replace(PPOConfig(warm_up=100, anneal_steps=1000), **options))
    assert learner.entropy_coefficient(0) == pytest.approx(first)
    assert learner.entropy_coefficient(550) == pytest.approx((first + last) / 2)
    assert learner.entropy_coefficient(1100) == learner.entropy_coefficient(10**9) == pytest.approx(last)
