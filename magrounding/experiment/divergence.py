"""Divergence: checks that training can go on from what was learnt, and advice where it cannot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from magrounding.agents.gradient_step import can_be_learnt_from
from magrounding.agents.policy import evaluating
from magrounding.errors import Diverged
from magrounding.experiment.phase import Phase
from magrounding.play.player import Player
from magrounding.training.trajectory import Trajectory


def check_losses(logs: Iterable[Mapping[str, float]]) -> None:
    """Raise Diverged for a loss without a finite square, as of learners that take gradient steps by themselves."""
    for log in logs:
        for name, number in log.items():
            if name.endswith("loss") and not can_be_learnt_from(number):
                raise Diverged(f"{name} is {number:g}")


@torch.no_grad()
def check_answers(player: Player, trajectory: Trajectory) -> None:
    """Raise Diverged unless what a network says at the end of its trajectory is finite, squares of values too.

    Weights can be finite and of no use: one step at a rate of 10¹⁰ makes such. Nothing goes on from them at any rate.
    """
    policy, inputs = player.policy, trajectory.on(player.device).boundary()
    with (
        evaluating(policy),
        torch.random.fork_rng(devices=[]),
        torch.autocast(player.device.type, torch.bfloat16, enabled=player.bf16),
    ):
        output = policy(policy.encode_batch(inputs))
    answers = output.logits.float().softmax(-1).sum() + output.value.float().square().sum()
    if not answers.isfinite():
        raise Diverged("with the weights that were learnt, what the network answers is not finite")


def explained(error: Diverged, stage: str, phase: Phase, steps: int) -> Diverged:
    """Return the error with a sentence about the phase that diverged, after so many environment steps."""
    where = f"{stage}, phase {phase.name}," if stage else f"phase {phase.name}"
    rate = getattr(phase.learner, "learning_rate", None)
    now = f" ({rate:g} now)" if isinstance(rate, float) else ""
    sentence = (
        f"{where} diverged after {steps:,} environment steps ({phase.learner.algorithm}): {error}; nothing of it was "
        f"saved, and an earlier checkpoint is whole: try a lower learning_rate{now}, clip_gradient, smaller rewards "
        "(reward_scale), or float32 (learner.bf16=false)"
    )
    return Diverged(sentence, f"learning_rate={rate / 10:g}" if isinstance(rate, float) else "")
