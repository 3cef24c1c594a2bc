"""V-trace and GAE against slow loops written from the papers' definitions, and in cases where the answer is known."""

import math

import pytest
import torch

from magrounding.training.impala import vtrace
from magrounding.training.ppo import normalised_returns
from magrounding.training.trajectory import gae

T, B = 7, 5


def unroll(seed, *, ends=0.25, dead=0.0):
    """A random unroll: log ratios, rewards, discounts, values, values that follow, continuation, life."""
    g = torch.Generator().manual_seed(seed)
    log_ratio, reward, value = (torch.randn(T, B, generator=g) for _ in range(3))
    ended = torch.rand(T, B, generator=g) < ends
    cut_off = ended & (torch.rand(T, B, generator=g) < 0.5)
    next_value = torch.cat((value[1:], torch.randn(1, B, generator=g)))
    next_value = torch.where(cut_off, torch.randn(T, B, generator=g), next_value)
    discount = torch.where(ended & ~cut_off, 0.0, 0.9)
    alive = torch.rand(T, B, generator=g) >= dead
    return log_ratio, reward, discount, value, next_value, ~ended, alive


def slow_vtrace(log_ratio, reward, discount, value, next_value, nonterminal, clip_rho, clip_c):
    """Equation 1 of the IMPALA paper, every target a sum of its own."""
    targets, advantages = torch.zeros(T, B), torch.zeros(T, B)
    for b in range(B):

        def delta(t, b=b):
            rho = min(clip_rho, math.exp(log_ratio[t, b]))
            return rho * (reward[t, b] + discount[t, b] * next_value[t, b] - value[t, b])

        for s in reversed(range(T)):
            total, weight = value[s, b].item(), 1.0
            for t in range(s, T):
                total += weight * delta(t)
                if not nonterminal[t, b]:
                    break
                weight *= discount[t, b] * min(clip_c, math.exp(log_ratio[t, b]))
            targets[s, b] = total
            after = next_value[s, b] if s + 1 == T or not nonterminal[s, b] else targets[s + 1, b]
            rho = min(clip_rho, math.exp(log_ratio[s, b]))
            advantages[s, b] = rho * (reward[s, b] + discount[s, b] * after - value[s, b])
    return targets, advantages


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("clip_rho", "clip_c"), [(1.0, 1.0), (2.0, 0.7)])
def test_vtrace_is_the_papers_sum(seed, clip_rho, clip_c):
    given = unroll(seed)
    result = vtrace(*given, clip_rho=clip_rho, clip_c=clip_c)
    target, advantage = slow_vtrace(*given[:-1], clip_rho, clip_c)
    torch.testing.assert_close(result.target, target)
    torch.testing.assert_close(result.advantage, advantage)


def test_dead_steps_learn_nothing():
    given = unroll(4, dead=0.5)
    alive = given[-1]
    for result in (vtrace(*given), gae(*given[1:])):
        assert (result.advantage[~alive] == 0).all()
        assert (result.advantage[alive] != 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_gae_is_the_papers_sum(seed):
    _, reward, discount, value, next_value, nonterminal, alive = unroll(seed)
    result = gae(reward, discount, value, next_value, nonterminal, alive, gae_lambda=0.8)
    for b in range(B):
        for s in range(T):
            total, weight = 0.0, 1.0
            for t in range(s, T):
                total += weight * (reward[t, b] + discount[t, b] * next_value[t, b] - value[t, b])
                if not nonterminal[t, b]:
                    break
                weight *= discount[t, b] * 0.8
            assert result.advantage[s, b].item() == pytest.approx(float(total), rel=1e-4, abs=1e-5)
    torch.testing.assert_close(result.target, value + result.advantage)


@pytest.mark.parametrize("seed", range(4))
def test_normalised_returns_are_those_of_a_slow_loop(seed):
    _, reward, _, value, _, nonterminal, alive = unroll(seed, dead=0.2)
    total = torch.zeros(T, B)
    for b in range(B):
        for s in range(T):
            for t in range(s, T):
                total[s, b] += 0.9 ** (t - s) * reward[t, b]
                if not nonterminal[t, b]:
                    break
    expected = (total - total[alive].mean()) / (total[alive].std() + 1e-5)
    target, advantage = normalised_returns(reward, 0.9, value, nonterminal, alive)
    torch.testing.assert_close(target[alive], expected[alive])
    torch.testing.assert_close(advantage[alive], (expected - value)[alive])
    assert target[alive].mean().abs() < 1e-5
    assert abs(target[alive].std() - 1) < 1e-4
    assert torch.equal(target[~alive], value[~alive])
    assert not advantage[~alive].any()
