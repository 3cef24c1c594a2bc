"""An imitation learner: behaviour cloning of all moves that an expert holds to be equally good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from magrounding.training.minibatch import MinibatchConfig, MinibatchLearner
from magrounding.training.rollout import Column, Documents


@dataclass(frozen=True)
class ImitationConfig(MinibatchConfig):
    """Options of the learner, beside those of `MinibatchConfig`.

    The loss is −log of the probability of the *set* of best moves: which of them the student takes is its own choice,
    so ties are no noise. The value learns the returns of the games that were played, for a learner that may follow.

    Attributes:
        algorithm: its name in config files.
        teacher_steps: environment steps over which the share of games that the teacher leads falls from 1 to 0; the
            student plays the others, and the teacher labels all (DAgger, Ross et al. 2011). None: behaviour cloning.
        teacher_noise: probability that a led agent takes any action instead.
    """

    algorithm: Literal["imitation"] = "imitation"
    baseline: float = 0.1
    teacher_steps: float | None = 20_000
    teacher_noise: float = 0.1

    def teacher_share(self, steps: float) -> float:
        """Share of the games that the teacher leads after so many environment steps."""
        if self.teacher_steps is None:
            return 1.0
        return max(0.0, 1.0 - steps / self.teacher_steps) if self.teacher_steps else 0.0


class ImitationLearner(MinibatchLearner[ImitationConfig]):
    """Behaviour cloning on soft labels."""

    def update(self, documents: Documents, column: Column, steps: int) -> dict[str, float]:
        """Learn from one agent's labelled column; see `Learner.update`."""
        labels = column.labels
        if labels is None:
            raise TypeError("an imitation learner needs a rollout with labels: collect it with a teacher")
        return self.descend(
            documents, column, steps, lambda games: self._losses(documents, column, games, labels[:, games])
        )

    def _losses(
        self, documents: Documents, column: Column, games: np.ndarray, labels: np.ndarray
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a minibatch of games [b], and its parts; "agreement" is the share of best moves taken."""
        c = self.config
        now = self.replay(documents, column, games)
        alive, best = self._tensor(column.alive[:, games]), self._tensor(labels)
        count = alive.sum().clamp(min=1)

        def mean(quantity: Tensor) -> Tensor:
            return torch.where(alive, quantity, 0.0).sum() / count

        log_pi = now.logits.log_softmax(-1)
        # The minimum of the dtype stands for "no": −inf would make gradients of a state without any label nan.
        imitation = mean(-torch.where(best, log_pi, torch.finfo(log_pi.dtype).min).logsumexp(-1))
        entropy = mean(-(log_pi.exp() * log_pi).sum(-1))
        target = self.returns(column, games, now).target
        baseline = mean((target - now.value).square())
        agreement = mean(best.gather(-1, now.logits.argmax(-1, keepdim=True)).squeeze(-1).float())
        parts = {
            **self.auxiliary(now, alive),
            "imitation_loss": imitation,
            "baseline_loss": baseline,
            "entropy": entropy,
            "agreement": agreement,
        }
        loss = imitation + c.baseline * baseline - c.entropy * entropy
        return loss + parts.get("auxiliary_loss", 0.0), parts
