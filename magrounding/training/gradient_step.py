"""Gradient steps: each one is bounded, and refused where loss or gradient are infinite."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from magrounding.agents.transfer import as_floats
from magrounding.errors import Diverged

LARGEST = math.sqrt(torch.finfo(torch.float32).max)
"""Bound of losses and gradients, 1.8 · 10¹⁹: the square of a larger number is infinite in float32, that of an error as
well as Adam's of a gradient. Losses that grow in a straight line, as Huber's, and bounded gradients would else stay
finite in networks of no use."""


def can_be_learnt_from(number: float) -> bool:
    """Return whether a loss, or the norm of a gradient, has a finite square in float32."""
    return abs(number) <= LARGEST  # NaN has none


def gradient_step(optimizer: torch.optim.Optimizer, loss: Tensor, clip: float = 0.0) -> Tensor:
    """Take a gradient step, for which the gradients of all parameters are set.

    Args:
        optimizer: of the parameters.
        loss: what the gradients are of, a scalar.
        clip: bound on the norm of the gradient; 0: none.

    Returns:
        Norm of the gradient before it was clipped, a scalar.

    Raises:
        Diverged: the loss or the norm is not finite, or larger than `LARGEST`; weights and the optimiser's statistics
            are as before.
    """
    learning = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    norm = nn.utils.clip_grad_norm_(learning, clip or math.inf)
    both = as_floats({"loss": loss, "norm": norm.to(loss.device)})  # the only wait for a device in a step
    if not all(map(can_be_learnt_from, both.values())):
        found = "the loss is {loss:g} and the norm of its gradient {norm:g}".format(**both)
        raise Diverged(f"{found}, so the step was not taken")
    optimizer.step()
    return norm
