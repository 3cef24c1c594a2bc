"""Telling: a statement of one's own manual is told by an action, which is scored by what the statement says."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class TellHead(nn.Module):
    """Logits of telling each statement, as texts to choose from are scored, whoever reads them.

    Args:
        statement: numbers that describe a statement.
        state: numbers that describe the agent's state.
    """

    def __init__(self, statement: int, state: int, hidden: int = 32) -> None:
        super().__init__()
        self.what, self.when = nn.Linear(statement, hidden), nn.Linear(state, hidden, bias=False)
        self.score = nn.Linear(hidden, 1)

    def forward(self, statements: Tensor, state: Tensor) -> Tensor:
        """Return [N, S] of statements [N, S, F] and states [N, D]."""
        return self.score(F.relu(self.what(statements) + self.when(state).unsqueeze(1))).squeeze(2)
