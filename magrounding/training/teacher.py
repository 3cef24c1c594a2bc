"""Teacher: an expert beside the actors of a rollout. It labels every state with the best actions, and leads some games.

Demonstrations show only the states that experts reach. In DAgger (Ross et al. 2011) the student acts and the expert
labels the states that the student reaches; the share of games that the expert leads falls as the student learns.
"""

from __future__ import annotations

import numpy as np

from magrounding.agents.policy import COSTS_TO_GO, LABELS
from magrounding.capabilities import Expert, find_costs_to_go, require_reasons


class Teacher:
    """Expert that labels every step with its best moves, and plays a share of the games with them.

    Args:
        expert: of the very games that are labelled.
        noise: probability that a led agent takes any action instead: led games then show mistakes and their remedies.
        seed: of the teacher's draws; with the step at which a rollout starts it decides all of them.

    Attributes:
        leads: [B] bool, the games that it leads.
    """

    def __init__(self, expert: Expert, noise: float, seed: int) -> None:
        self._expert, self._noise, self._seed = expert, noise, seed
        self._rng = np.random.default_rng(seed)
        self.leads = np.zeros(0, np.bool_)
        self._best = np.zeros(0, np.bool_)

    def begin(self, num_envs: int, beta: float, steps: int) -> None:
        """Before a rollout: choose the games to lead, each with probability `beta`; a resumed run draws the same."""
        self._rng = np.random.default_rng((self._seed, steps))
        self.leads = self._rng.random(num_envs) < beta

    def label(self, reasons: bool = False) -> dict[str, np.ndarray]:
        """Judge the states on show, by the names of `agents.policy`.

        Args:
            reasons: the expert gives REASONS too.

        Returns:
            LABELS [B, n, A]; COSTS_TO_GO [B, n, A] of an expert that knows them; REASONS [B, n, …] where asked for.

        Raises:
            ConfigurationError: an expert that can give no reasons.
        """
        self._best = self._expert.best_actions()
        judged = {LABELS: self._best}
        judge = find_costs_to_go(self._expert)
        if judge is not None:
            judged[COSTS_TO_GO] = judge.costs_to_go
        if reasons:
            judged |= require_reasons(self._expert).reasons()._asdict()
        return judged

    def lead(self, actions: np.ndarray) -> None:
        """Overwrite the actions [B, n] of the games that are led by best moves, drawn evenly among equals."""
        rows, best = np.flatnonzero(self.leads), self._best
        if not len(rows):
            return
        taken = (self._rng.random((len(rows), *best.shape[1:])) * best[rows]).argmax(-1)
        stray = self._rng.random(taken.shape) < self._noise
        actions[rows] = np.where(stray, self._rng.integers(best.shape[-1], size=taken.shape), taken)
