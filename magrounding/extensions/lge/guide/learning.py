"""Training of a Guide: tasks near their gold actions and far from others, by contrast in a batch (LGE app. A)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.errors import ConfigurationError
from magrounding.extensions.lge.guide.guide import Guide
from magrounding.schema import Count, Natural, NonNegative, Options, Positive
from magrounding.single.scienceworld.trajectories import Trajectory
from magrounding.training.gradient_step import gradient_step


@dataclass(frozen=True)
class GuideLearning(Options):
    """Hyperparameters of a Guide's training.

    Attributes:
        epochs: passes over all (task, gold action); LGE has 10 for a pretrained model.
        batch: N; 128 in LGE.
        rate: of AdamW; it falls to 0 in a straight line.
        hard_negatives: for each gold action, drawn anew in each epoch; 1 in LGE. More of them are what a network that
            learns from scratch profits from most.
        decay: of the weights.
        seed: of the order and of the negatives.
    """

    epochs: Count = 40
    batch: Count = 64
    rate: Positive = 2e-3
    hard_negatives: Count = 8
    decay: NonNegative = 0.0
    seed: Natural = 0


PRETRAINED = GuideLearning(epochs=10, batch=128, rate=5e-5, hard_negatives=1)
"""Fine-tuning of a language model, as in LGE."""


class Example(NamedTuple):
    """A gold action of a task."""

    text: str
    action: str
    gold: frozenset[str]
    negatives: Sequence[str]


def contrastive_loss(tasks: Tensor, gold: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """Return the mean over i of the negative log of gold action i's share among all actions of the batch, a scalar.

    LGE sums over i, which is the same at another rate. `tasks`, `gold` [N, D] and hard negatives [M, D] have length 1.
    """
    scores = tasks @ torch.cat((gold, negatives)).T / temperature
    return F.cross_entropy(scores, torch.arange(len(tasks), device=scores.device))


def examples_of(trajectories: Sequence[Trajectory]) -> list[Example]:
    """Return one example for each gold action; negatives are all actions ever valid in its kind of task.

    Raises:
        ConfigurationError: there is none, or a kind of task whose trajectories lack the valid actions.
    """
    listed: dict[str, set[str]] = {}
    for each in trajectories:
        listed.setdefault(each.task, set()).update(each.valid)
    negatives = {task: sorted(found) for task, found in listed.items()}
    if not negatives:
        raise ConfigurationError("there is no gold trajectory to learn from: collect some of training variations")
    for each in trajectories:
        if not listed[each.task] - each.gold:
            raise ConfigurationError(
                f"no trajectory of {each.task} says what was valid along it, so there are no negatives: collect some so"
            )
    return [
        Example(each.text, action, each.gold, negatives[each.task])
        for each in trajectories
        for action in sorted(each.gold)
    ]


def learn_guide(
    guide: Guide,
    trajectories: Sequence[Trajectory],
    learning: GuideLearning,
    progress: Callable[[int, float], object] = lambda epoch, loss: None,
) -> float:
    """Train a Guide in place and return the last epoch's mean loss; `progress` gets each epoch's number and loss.

    Raises:
        ConfigurationError: as of `examples_of`.
        Diverged: the loss or its gradient is not finite: a lower rate may help.
    """
    examples, rng = examples_of(trajectories), random.Random(learning.seed)
    batches = max(1, len(examples) // learning.batch)
    optimizer = torch.optim.AdamW(guide.parameters(), learning.rate, weight_decay=learning.decay)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, learning.epochs * batches)
    guide.train()
    mean = float("nan")
    for epoch in range(1, learning.epochs + 1):
        rng.shuffle(examples)
        total = 0.0
        for start in range(0, batches * learning.batch, learning.batch):
            chosen = examples[start : start + learning.batch]
            texts = [each.text for each in chosen] + [each.action for each in chosen] + _hard(chosen, learning, rng)
            places = {text: place for place, text in enumerate(dict.fromkeys(texts))}  # each is read once
            vectors = guide(list(places))[[places[text] for text in texts]]
            tasks, gold, negatives = vectors.split((len(chosen), len(chosen), len(texts) - 2 * len(chosen)))
            loss = contrastive_loss(tasks, gold, negatives, guide.temperature)
            optimizer.zero_grad()
            loss.backward()
            gradient_step(optimizer, loss)
            schedule.step()
            total += loss.item()
        mean = total / batches
        progress(epoch, mean)
    guide.eval()
    return mean


def _hard(chosen: Sequence[Example], learning: GuideLearning, rng: random.Random) -> list[str]:
    """Hard negatives: actions valid in the kind of task that are not gold in the variation."""
    found = []
    for each in chosen:
        for _ in range(learning.hard_negatives):
            action = rng.choice(each.negatives)
            while action in each.gold:
                action = rng.choice(each.negatives)
            found.append(action)
    return found
