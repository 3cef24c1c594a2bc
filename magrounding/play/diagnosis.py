"""Diagnosis: counts of a team's conduct while it plays."""

from __future__ import annotations

from typing import Any

import numpy as np

from magrounding.capabilities import HasPlaces, find_capability
from magrounding.play.pursuit import conflicts, pursued
from magrounding.vector import Info, Observation, VectorEnv


class Diagnosis:
    """Counts over all steps of the games that are evaluated; see `metrics`.

    Args:
        vec: the games. Without the capability PLACES no pursuit is counted.
        team: a `Team` also counts what its networks report of their choices (`Policy.diagnostics`).
    """

    def __init__(self, vec: VectorEnv, team: Any) -> None:
        self._places = find_capability(vec, HasPlaces)
        self._diagnose = getattr(team, "diagnose", None)
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._pursuit: tuple[np.ndarray, np.ndarray] | None = None

    def chosen(self, rows: np.ndarray, obs: Observation, alive: np.ndarray, actions: np.ndarray, memory: Any) -> None:
        """Count in the actions [B, n] of a step that is not played yet, of the agents `alive` [B, n] in `rows` [R]."""
        if self._diagnose is not None:
            for name, shares in self._diagnose(memory, actions, alive, rows).items():
                self._add(name, shares)
        places = self._places.entity_places() if self._places is not None and "position" in obs else None
        if places is not None and actions.shape[1] > 1:
            self._pursuit = obs["position"].copy(), places

    def played(self, rows: np.ndarray, obs: Observation, info: Info) -> None:
        """Count in the observation and info of the step that was played."""
        if self._pursuit is None:
            return
        (before, places), after = self._pursuit, obs["position"].copy()
        after[info.final_rows] = info.final_observation["position"]
        self._add("subgoal_conflicts", conflicts(pursued(before[rows], after[rows], places[rows])))

    def metrics(self) -> dict[str, float]:
        """Means over steps; what never came up is left out.

        subgoal_conflicts: of the pairs of agents who both pursue something in a step, the share who pursue the same
            entity (see `pursuit`); and what the networks count themselves.
        """
        return {name: total / self._counts[name] for name, total in self._sums.items() if self._counts[name]}

    def _add(self, name: str, values: np.ndarray) -> None:
        """Count values of any shape; nan is none."""
        known = values[~np.isnan(values)]
        self._sums[name] = self._sums.get(name, 0.0) + float(known.sum())
        self._counts[name] = self._counts.get(name, 0) + known.size
