"""SimulatorVectorEnv: base of the vector envs of simulators, in this process or in workers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import Expert, HasState, HasTextView
from magrounding.simulators.arena import Arena
from magrounding.spec import EnvSpec
from magrounding.text_view import describe_row
from magrounding.vector import Info, Observation, check_flags


class SimulatorVectorEnv(HasState, Expert, HasTextView):
    """Base of the vector envs that `vectorize` makes; see there for their arguments.

    A subclass sets `spec`, `num_agents` and `_arena`.
    """

    spec: EnvSpec
    num_agents: int
    _arena: Arena

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

    def describe(self, row: int, agent: int) -> str:
        shown = self._on_show()
        return describe_row(self, shown.observation, shown, self._arena.actions, row, agent)

    @abstractmethod
    def _on_show(self) -> Arena:
        """Return the arrays of the last step; CallOrderError before `reset`, and while a step is being played."""

    @abstractmethod
    def close(self) -> None:
        """Release all envs; twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
