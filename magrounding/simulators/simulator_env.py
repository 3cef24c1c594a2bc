"""SimulatorVectorEnv: base of the vector envs of simulators, in this process or in workers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import Expert, HasState
from magrounding.simulators.arena import Arena
from magrounding.spec import EnvSpec
from magrounding.vector import Info, Observation, check_flags


class SimulatorVectorEnv(HasState, Expert):
    """Base of the vector envs that `vectorize` makes; see there for their arguments.

    A subclass sets `spec`, `num_agents` and `_arena`.
    """

    spec: EnvSpec
    num_agents: int
    _arena: Arena

    def __init__(self, id: str, options: Mapping[str, Any], num_envs: int) -> None:
        self.id, self.options, self.num_envs = id, dict(options), num_envs

    def hold(self, rows: np.ndarray) -> None:
        """Leave episodes as they are in the steps to come.

        Args:
            rows: [B] bool; they must have begun anew in the step before. The actions given for them are ignored.

        Raises:
            ConfigurationError: anything but an array of so many truth values.
        """
        self._arena.held[:] = check_flags("rows", rows, self.num_envs)

    @abstractmethod
    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode.

        Args:
            seed: an integer in [0, 2**62).
            rows: rows [R] that are started, by default all; the others stay as they are.

        Raises:
            ConfigurationError: a wrong seed or wrong rows.
            CallOrderError: after `close`; for some of the rows, before a reset of all.
        """

    @abstractmethod
    def close(self) -> None:
        """Release all envs; twice is fine."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
