"""Returns and advantages from unrolls: V-trace and generalised advantage estimation, pure functions of [T, B] tensors.

An unroll may hold the end of an episode anywhere. Three arrays describe each step:

* `discount`: the factor on the value after the step: gamma, or 0 where nothing follows (termination, a time-out that
  is a loss).
* `next_value`: the value after the step: of the next observation of the unroll, or, where the episode was cut off by a
  time limit that is no loss, of its true final observation.
* `nonterminal`: whether the next step of the unroll belongs to the same episode of the same living agent.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Returns(NamedTuple):
    """target [T, B] for the value function, advantage [T, B] for the policy; neither carries a gradient."""

    target: Tensor
    advantage: Tensor


@torch.no_grad()
def normalised_returns(reward: Tensor, gamma: float, value: Tensor, nonterminal: Tensor, alive: Tensor) -> Returns:
    """Discounted sums of rewards, normalised over the unroll, and what they exceed the value by.

    The flavour of MESSENGER's program (Hanjie et al. 2021): nothing is added for what the unroll's end cuts off.

    Args:
        reward: [T, B].
        gamma: discount of a step.
        value: [T, B] values of the learner, which live on the normalised scale.
        nonterminal: [T, B] bool; where false the sum starts anew.
        alive: [T, B] bool; where false nothing is learnt: the target is `value`, the advantage 0.
    """
    total, later = torch.zeros_like(reward), torch.zeros_like(reward[0])
    for t in reversed(range(len(reward))):
        total[t] = later = reward[t] + gamma * torch.where(nonterminal[t], later, 0.0)
    lived = total[alive]
    if len(lived) > 1:
        total = (total - lived.mean()) / (lived.std() + 1e-5)
    target = torch.where(alive, total, value)
    return Returns(target, target - value)


@torch.no_grad()
def vtrace(
    log_ratio: Tensor,
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    next_value: Tensor,
    nonterminal: Tensor,
    alive: Tensor,
    *,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
) -> Returns:
    """V-trace targets and policy-gradient advantages (Espeholt et al. 2018, section 4.1, equation 1 and remark 1).

    Args:
        log_ratio: [T, B] log pi(a) − log mu(a).
        reward: [T, B].
        discount: [T, B] factor on `next_value`, 0 where nothing follows.
        value: [T, B] values of the learner.
        next_value: [T, B], see the module's docstring.
        nonterminal: [T, B] bool; where false the recursion starts anew.
        alive: [T, B] bool; where false nothing is learnt: the target is `value`, the advantage 0.
        clip_rho: bound on the importance weight of a step.
        clip_c: bound on the weight with which a later error is passed back.
    """
    ratio = log_ratio.exp()
    rho = ratio.clamp(max=clip_rho)
    delta = torch.where(alive, rho * (reward + discount * next_value - value), 0.0)
    passed_back = torch.where(nonterminal & alive, discount * ratio.clamp(max=clip_c), 0.0)
    correction = torch.empty_like(value)  # v_t − V(x_t)
    carry = torch.zeros_like(value[0])
    for t in reversed(range(len(value))):
        carry = delta[t] + passed_back[t] * carry
        correction[t] = carry
    next_correction = torch.cat([correction[1:], torch.zeros_like(correction[:1])])
    next_target = next_value + torch.where(nonterminal, next_correction, 0.0)
    advantage = torch.where(alive, rho * (reward + discount * next_target - value), 0.0)
    return Returns(value + correction, advantage)


@torch.no_grad()
def gae(
    reward: Tensor,
    discount: Tensor,
    value: Tensor,
    next_value: Tensor,
    nonterminal: Tensor,
    alive: Tensor,
    *,
    gae_lambda: float = 0.95,
) -> Returns:
    """Generalised advantage estimation (Schulman et al. 2016, eq. 16); arguments as in `vtrace`."""
    delta = torch.where(alive, reward + discount * next_value - value, 0.0)
    passed_back = torch.where(nonterminal & alive, discount * gae_lambda, 0.0)
    advantage = torch.empty_like(value)
    carry = torch.zeros_like(value[0])
    for t in reversed(range(len(value))):
        carry = delta[t] + passed_back[t] * carry
        advantage[t] = carry
    return Returns(value + advantage, advantage)
