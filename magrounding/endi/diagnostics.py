"""Diagnostics of divisions: claimed entities, conflicting claims, and accuracy of the predicted actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from magrounding.endi.division import LEFT, NOTHING, TAKEN


def diagnose(aux: Sequence[Mapping[str, np.ndarray]], actions: np.ndarray, acted: np.ndarray) -> dict[str, np.ndarray]:
    """Return metrics of a step of R episodes.

    Args:
        aux: for each agent, `marks` [R, H, W] (see `Division.taken`) and perhaps `guesses` [R, n − 1], see
            `EnDi.respond`.
        actions: [R, n].
        acted: [R, n] bool.

    Returns:
        Each [R, n], nan for an agent that did not act:

        mask_coverage: share of the entities an agent sees that it takes, nan where it sees none.
        mask_conflicts: share of them that it takes and another agent takes too, nan likewise.
        modelling_accuracy: share of the others who acted whose action was guessed, nan where none did; absent unless
            every agent guesses.
    """
    coverage, conflicts = _shares(aux, acted)
    metrics = {"mask_coverage": coverage, "mask_conflicts": conflicts}
    if all("guesses" in each for each in aux):
        metrics["modelling_accuracy"] = _accuracy(np.stack([each["guesses"] for each in aux], 1), actions, acted)
    return metrics


def _shares(aux: Sequence[Mapping[str, np.ndarray]], acted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares [R, n] of an agent's entities that it takes, and that another takes too."""
    marks = np.where(acted[..., None, None], np.stack([each["marks"] for each in aux], 1), NOTHING)  # [R, n, H, W]
    own = marks == TAKEN
    seen = (marks >= LEFT).sum((-2, -1))
    seen = np.where(seen > 0, seen, np.nan)
    contested = own & (own.sum(1, keepdims=True) > 1)
    return own.sum((-2, -1)) / seen, contested.sum((-2, -1)) / seen


def _accuracy(guesses: np.ndarray, actions: np.ndarray, acted: np.ndarray) -> np.ndarray:
    """[R, n] of guesses [R, n, n − 1], each agent's of the others, in their order."""
    n = actions.shape[1]
    others = np.array([[j for j in range(n) if j != i] for i in range(n)])  # [n, n − 1]
    known = acted[:, others]
    right = ((guesses == actions[:, others]) & known).sum(2, dtype=np.float32)
    count = known.sum(2, dtype=np.float32)
    return np.where(acted & (count > 0), right / np.maximum(count, 1), np.float32(np.nan))
