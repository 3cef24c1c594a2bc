"""SimulatorVectorEnv: base of the vector envs of simulators, in this process or in workers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import Expert, HasState, HasTextView, require_capability
from magrounding.simulators.arena import Arena
from magrounding.simulators.worker import LABEL, STATE
from magrounding.spec import EnvSpec
from magrounding.text_view import describe_row
from magrounding.vector import CallOrder, Info, Observation, StepResult, check_flags, check_rows, row_seeds


class SimulatorVectorEnv(CallOrder, HasState, Expert, HasTextView):
    """Base of the vector envs that `vectorize` makes; see there for their arguments.

    A subclass sets `spec`, `num_agents`, `_arena`, which envs write, and `_shown`, which the caller sees.
    """

    spec: EnvSpec
    num_agents: int
    _arena: Arena
    _shown: Arena

    def __init__(self, id: str, options: Mapping[str, Any], num_envs: int) -> None:
        self.id, self.options, self.num_envs = id, dict(options), num_envs

    def hold(self, rows: np.ndarray) -> None:
        """Leave the episodes of rows [B] bool as they are in the steps to come; actions given for them are ignored.

        They must have begun anew in the step before. A ConfigurationError for anything but an array of truth values.
        """
        self._arena.held[:] = check_flags("rows", rows, self.num_envs)

    @abstractmethod
    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
        """Start all rows afresh, or rows [R] alone: row b plays seed + b, without a seed its next episode.

        Raises:
            ConfigurationError: a wrong seed or wrong rows.
            CallOrderError: after `close`; for some of the rows, before a reset of all.
        """

    @abstractmethod
    def step(self, actions: ArrayLike) -> StepResult:
        """Play one step, as `VectorEnv.step` says."""

    def best_actions(self, rows: ArrayLike | None = None) -> np.ndarray:
        """Return best actions now, [B, n, A] bool, in `rows` [R] (by default all); the others keep older ones."""
        self._require_start("best_actions")
        require_capability(self, Expert)
        self._select(rows)
        self._obey(LABEL)
        return self._arena.labels.copy()

    def state(self) -> np.ndarray:
        self._require_rest("state")
        require_capability(self, HasState)
        self._obey(STATE)
        return self._arena.state.copy()

    def describe(self, row: int, agent: int) -> str:
        self._require_rest("describe")
        return describe_row(self, self._shown.observation, self._shown, self._arena.actions, row, agent)

    @abstractmethod
    def close(self) -> None:
        """Release all envs; twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def _obey(self, command: bytes) -> None:
        """Have all envs do what a command says (`worker`)."""

    def _select(self, rows: ArrayLike | None) -> np.ndarray:
        """Select rows [R] of the arena alone, by default all; return their numbers."""
        chosen = check_rows(rows, self.num_envs)
        self._arena.selected[:] = False
        self._arena.selected[chosen] = True
        return chosen

    def _seeds(self, seed: int | None) -> np.ndarray | None:
        """Return the seeds [B] of a reset; None where each row goes on to its next episode."""
        return None if self._begun and seed is None else row_seeds(seed, self.num_envs)

    def _name_episodes(self, seeds: np.ndarray | None, chosen: np.ndarray) -> None:
        """Write to the arena which episodes rows [R] start."""
        arena = self._arena
        if seeds is None:
            arena.episode[chosen] += 1
        else:
            arena.seeds[chosen], arena.episode[chosen] = seeds[chosen], 0

    def _require_rest(self, what: str) -> None:
        """Raise a CallOrderError before a reset, and before `what` while a step is being played."""
        self._require_start(what)
