"""Diagnosis: what a team does beside winning, counted while it plays."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.endi.diagnostics import division_shares
from magrounding.evaluation.pursuit import conflicts, pursued
from magrounding.vector import Observation, VectorEnv


class Diagnosis:
    """Counts over all steps of the games that are evaluated; see `facts`.

    Args:
        vec: the games. Without places of entities (`BatchedWorld.entity_places`) no pursuit is counted.
        team: who plays; a `Team` also tells how it divides entities and foresees others, where its networks do.
    """

    def __init__(self, vec: VectorEnv, team: Any) -> None:
        self._world, self._team = getattr(vec, "world", None), team
        self._divides, self._foresees = getattr(team, "taken", None), getattr(team, "foresight", None)
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._pursuit: tuple[np.ndarray, np.ndarray] | None = None

    def chosen(self, rows: np.ndarray, obs: Observation, alive: np.ndarray, actions: np.ndarray, memory: Any) -> None:
        """The team has chosen actions [B, n], and nothing has moved yet.

        Args:
            rows: [R] games that count.
            obs: what the team saw.
            alive: [B, n] bool, who acts.
            actions: [B, n].
            memory: of the team.
        """
        taken = self._divides(memory) if self._divides else None
        if taken is not None:
            coverage, shared = division_shares(taken[rows].swapaxes(0, 1), alive[rows].T)
            self._add("mask_coverage", coverage)
            self._add("mask_conflicts", shared)
        foresight = self._foresees(memory, actions, alive, rows) if self._foresees else None
        if foresight is not None:
            self._add("modelling_accuracy", np.where(alive[rows], foresight, np.nan))
        places = self._world.entity_places() if self._world is not None and "position" in obs else None
        if places is not None and actions.shape[1] > 1:
            self._pursuit = obs["position"].copy(), places

    def played(self, rows: np.ndarray, obs: Observation, info: dict[str, Any]) -> None:
        """The games have moved; `obs` and `info` are those of the vector env's step."""
        if self._pursuit is None:
            return
        (before, places), after = self._pursuit, obs["position"].copy()
        after[info["final_rows"]] = info["final_observation"]["position"]
        self._add("subgoal_conflicts", conflicts(pursued(before[rows], after[rows], places[rows])))

    def facts(self) -> dict[str, float]:
        """Means over steps; what never came up is left out.

        subgoal_conflicts: of the pairs of agents who both pursue something in a step, the share who pursue the same
            entity (see `pursuit`).
        mask_coverage, mask_conflicts: share of the entities an agent sees that it takes, and that another takes too.
        modelling_accuracy: how often what an agent held for another's most likely action was what that one did.
        """
        return {name: total / self._counts[name] for name, total in self._sums.items() if self._counts[name]}

    def _add(self, name: str, values: np.ndarray) -> None:
        """Count values of any shape; nan is none."""
        known = values[~np.isnan(values)]
        self._sums[name] = self._sums.get(name, 0.0) + float(known.sum())
        self._counts[name] = self._counts.get(name, 0) + known.size
