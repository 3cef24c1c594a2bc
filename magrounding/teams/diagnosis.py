"""Diagnosis: statistics of how a team plays, such as the share of subgoal conflicts.

Ding et al. (2023, section 5.2) argue with subgoal conflicts, but do not define them for agents that divide no goals.
`pursued` and `conflicts` are defined by positions alone, so they apply to any team, also to a random one.

An agent pursues the nearest of the entities that its move brought it nearer to; one that came nearer to none pursues
nothing. The entity that an agent pursues in a step is the one that it takes or fights next in 70 % of such steps in S5
of two-agent RTFM, 76 % in S1 and 94 % in S2 of two-agent MESSENGER (oracles). So some conflicts are false: compare the
numbers with those of the oracle, which gives each agent a target of its own, and of the random team.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from magrounding.capabilities import HasPlaces, find_capability
from magrounding.vector import Info, Observation, VectorEnv

NOTHING = -1
"""Index of the entity pursued by an agent that pursues none."""


class Diagnosis:
    """Sums and counts over all steps of the evaluated games.

    Without the capability PLACES there are no subgoal conflicts. A `Team` also counts what its networks report of their
    choices (`Policy.diagnostics`). Where agents tell lines of a split manual, these are counted (`lines` of the world).
    """

    def __init__(self, vec: VectorEnv, team: Any) -> None:
        self._places = find_capability(vec, HasPlaces)
        self._diagnose = getattr(team, "diagnose", None)
        self._sums, self._counts = defaultdict[str, float](float), defaultdict[str, int](int)
        self._pursuit: tuple[np.ndarray, np.ndarray] | None = None
        self._lines_of = getattr(getattr(vec, "world", None), "lines", None)
        self._lines = None

    def chosen(self, rows: np.ndarray, obs: Observation, alive: np.ndarray, actions: np.ndarray, memory: Any) -> None:
        """Add the actions [B, n] of a step before it is played, of the agents `alive` [B, n] bool in `rows` [R]."""
        if self._diagnose is not None:
            for name, shares in self._diagnose(memory, actions, alive, rows).items():
                self._add(name, shares)
        self._lines = self._lines_of and self._lines_of()
        places = self._places.entity_places() if self._places is not None and "position" in obs else None
        if places is not None and actions.shape[1] > 1:
            self._pursuit = obs["position"].copy(), places

    def played(self, rows: np.ndarray, obs: Observation, info: Info) -> None:
        """Add the observation and info after that step."""
        if self._lines is not None:
            told, needed = (each[rows[info.done[rows]]] for each in self._lines)
            self._add("lines_told", told.sum(1))
            self._add("needed_told", told[needed])
        if self._pursuit is None:
            return
        (before, places), after = self._pursuit, obs["position"].copy()
        after[info.final_rows] = info.final_observation["position"]
        self._add("subgoal_conflicts", conflicts(pursued(before[rows], after[rows], places[rows])))

    def metrics(self) -> dict[str, float]:
        """Means over steps, without the metrics that never occurred.

        `subgoal_conflicts` is the share of the pairs of agents that pursue the same entity (see `pursued`), of those
        that both pursue one in a step; `lines_told` are the lines told before the last step of a game, `needed_told` is
        the share that is told of those that a game needs. The other metrics are those that the networks report.
        """
        return {name: total / self._counts[name] for name, total in self._sums.items() if self._counts[name]}

    def _add(self, name: str, values: np.ndarray) -> None:
        """Add values of any shape, except nan."""
        known = values[~np.isnan(values)]
        self._sums[name] += float(known.sum())
        self._counts[name] += known.size


def pursued(before: np.ndarray, after: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the entity that each agent pursues with a move.

    Args:
        before, after: [R, n, 2] row and column of the agents, row -1 for the dead.
        places: [R, E, 2] of the entities before the move, row -1 for what is not there.

    Returns:
        [R, n] index of an entity (the first of several equally near), or NOTHING.
    """
    was, now = (np.abs(agents[:, :, None] - places[:, None]).sum(3) for agents in (before, after))  # [R, n, E]
    lives = (before[..., 0] >= 0) & (after[..., 0] >= 0)
    nearer = lives[..., None] & (places[:, None, :, 0] >= 0) & (now < was)
    return np.where(nearer.any(2), np.where(nearer, now, np.inf).argmin(2), NOTHING)


def conflicts(goals: np.ndarray) -> np.ndarray:
    """Return [pairs] bool, whether both pursue the same entity, of the pairs in `goals` [R, n] that pursue any."""
    one, other = (goals[:, agents] for agents in np.triu_indices(goals.shape[1], 1))
    return (one == other)[(one != NOTHING) & (other != NOTHING)]
