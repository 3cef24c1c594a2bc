"""QLearner: the base of learners of action values, which store what was played and make the updates that are due."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from magrounding.agents.policy import Policy
from magrounding.agents.transfer import as_floats
from magrounding.schema import Count, Natural, NonNegative, Share
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.learner import Learner, Loss
from magrounding.training.prefixes import prefixed, under
from magrounding.training.trajectory import Trajectory


@dataclass(frozen=True)
class QLearningConfig(AlgorithmConfig):
    """Options of any learner of action values.

    Attributes:
        batch: of an update.
        updates: for each unit that is played: an episode, or a step of all games.
        target_every: units between two copies into the target network, which gives the value after a step; 0: there is
            none, the network itself does.
        learning_rate: of the optimiser.
        clip_gradient: norm of a step's gradient; 0: no bound.
        gamma: discount of a step.
        exploration: environment steps over which exploration falls.
    """

    scaled: ClassVar[tuple[str, ...]] = ("exploration",)

    batch: Count = 32
    updates: NonNegative = 1.0
    target_every: Natural = 0
    learning_rate: NonNegative = 1e-4
    clip_gradient: NonNegative = 10.0
    gamma: Share = 0.99
    exploration: NonNegative = 500_000


Config = TypeVar("Config", bound=QLearningConfig)
Drawn = TypeVar("Drawn")


class QLearner(Learner[Config], Generic[Config, Drawn]):
    """Learner that stores what was played and makes the updates that are due; `seed` is of the draws from the replay.

    Attributes:
        replay_buffer: what is drawn from; its `snapshot` and `restore` are of all that decides the draws.
        played, updates: units that were played, and updates that were made, so far.
    """

    replay_buffer: Any

    def __init__(self, policy: Policy, config: Config, seed: int) -> None:
        super().__init__(policy, config)
        self._seed = seed
        self.played = self.updates = self._copied_at = 0

    @abstractmethod
    def store(self, trajectory: Trajectory) -> int:
        """Put a trajectory into the replay; return how many units it was."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Drawn | None:
        """Draw what one update learns from; None as long as there is too little."""

    @abstractmethod
    def loss(self, drawn: Drawn, /) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss to minimise, and what else the log is to say."""

    def copy_to_target(self) -> None:
        """Copy the network to the target network."""

    def metrics(self, steps: int) -> dict[str, float]:
        """Metrics of playing for the log, after a trajectory was stored."""
        return {}

    def update(self, trajectory: Trajectory, steps: int) -> dict[str, float]:
        """Store a trajectory and make the updates that are due; see `Learner.update`."""
        c = self.config
        self.played += self.store(trajectory)
        metrics: list[Mapping[str, Tensor]] = []
        while self.updates < int(c.updates * self.played):
            # What is drawn is a function of the count alone, so a resumed run draws the same.
            drawn = self.draw(np.random.default_rng((self._seed, self.updates)))
            if drawn is None:  # what would have been learnt from so few is not made up for
                self.updates = int(c.updates * self.played)
                break
            metrics.append(self._step(drawn))
            self.updates += 1
        if c.target_every and self.played - self._copied_at >= c.target_every:
            self._copied_at = self.played
            self.copy_to_target()
        return self.metrics(steps) | _means(metrics)

    def snapshot(self) -> dict[str, np.ndarray]:
        counts = np.array([self.played, self.updates, self._copied_at])
        return {"counts": counts, **prefixed("replay.", self.replay_buffer.snapshot())}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.played, self.updates, self._copied_at = arrays["counts"].tolist()
        self.replay_buffer.restore(under("replay.", arrays))

    def _step(self, drawn: Drawn) -> dict[str, Tensor]:
        """One gradient step."""

        def loss() -> Loss:
            value, metrics = self.loss(drawn)
            return value, {"td_loss": value, **metrics}

        log, norm = self.gradient_step([loss])
        return {**log, **norm}


def td_loss(value: Tensor, target: Tensor, known: Tensor, delta: float | None = None) -> Tensor:
    """The mean of an error over what is known: squared, or Huber's (1964) beyond `delta` linear and below half of it.

    Args:
        value, target: [S].
        known: [S] bool; there is no target for the others.
        delta: of Huber's error.
    """
    error = torch.where(known, value - target, 0.0)
    each = (
        error.square() if delta is None else F.huber_loss(error, torch.zeros_like(error), reduction="none", delta=delta)
    )
    return each.sum() / known.sum().clamp(min=1)


def _means(metrics: Sequence[Mapping[str, Tensor]]) -> dict[str, float]:
    """The mean of each metric, scalars, over several updates; nothing without an update."""
    if not metrics:
        return {}
    known = as_floats({(k, name): number for k, each in enumerate(metrics) for name, number in each.items()})
    return {name: float(np.mean([known[k, name] for k in range(len(metrics))])) for name in metrics[0]}
