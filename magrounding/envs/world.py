"""BatchedWorld: interface of a simulator of many environments; agents, flags and seeds are bookkeeping on top of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np

from magrounding.brief import brief
from magrounding.capabilities import HasFacts, HasPlaces, HasState
from magrounding.envs.render import Scene
from magrounding.spec import EnvSpec
from magrounding.vector import PER_AGENT, PER_ENV


class StepBuffers(NamedTuple):
    """Arrays that one step of B rows writes, valid until the next step: see `Info` and `VectorEnv.step`.

    `score` is written only by worlds that have one.
    """

    __repr__ = brief

    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    alive: np.ndarray
    illegal: np.ndarray
    done: np.ndarray
    won: np.ndarray
    length: np.ndarray
    returns: np.ndarray
    document: np.ndarray
    score: np.ndarray

    @classmethod
    def allocate(cls, num_envs: int, num_agents: int) -> StepBuffers:
        """Return buffers of zeros; all agents are alive."""
        arrays = {name: np.zeros((num_envs, num_agents), dtype) for name, dtype in PER_AGENT.items()}
        arrays |= {name: np.zeros(num_envs, dtype) for name, dtype in PER_ENV.items()}
        arrays["alive"][:] = True
        return cls(**arrays)


class Offers(HasState, HasPlaces, HasFacts, Protocol):
    """Methods of a world where `spec.capabilities` names them, and `adjust` where an option is adjustable."""

    def adjust(self, **options: float) -> None:
        """Change options that are `adjustable`, for episodes that begin from now on; ConfigurationError for others."""

    def events(self) -> dict[str, np.ndarray]:
        """Return what agents did in the last step, and what they hold, each [B, n] integers.

        "kills": monsters that an agent has killed in it, where there are any to kill; "held": the number of the thing
        that it holds now, −1 for nothing. Of an episode that has begun in the step only what it holds is known.
        """
        ...

    def scene(self, row: int) -> Scene:
        """Return one row as a picture's worth of facts, for the renderers."""
        ...

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays that decide how all episodes go on, and of what is on show."""
        ...

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on from a snapshot of a world of the same configuration; ConfigurationError for another's."""


class BatchedWorld(Offers, ABC):
    """B environments of one configuration, simulated in flat arrays.

    Attributes:
        num_envs, num_agents: B and n.
        spec: observations, actions, limits; the methods of `Offers` that its capabilities name are there.
        observation: dict of batch buffers laid out as `spec.allocate` (shared keys without the agent axis).
        final_observation: the same; its first `len(final_rows)` rows are the last observations of episodes that ended.
        final_rows: [F] int64, rows of those episodes.
        out: StepBuffers.
    """

    num_envs: int
    num_agents: int
    spec: EnvSpec
    observation: dict[str, np.ndarray]
    final_observation: dict[str, np.ndarray]
    final_rows: np.ndarray
    out: StepBuffers

    @abstractmethod
    def reset(self, seeds: np.ndarray | None = None) -> None:
        """Start episode 0 of each row's seed ([B] int64), or, without seeds, every row's next episode.

        Fills `observation` and `out`.
        """

    @abstractmethod
    def step(self, actions: np.ndarray, auto_reset: bool) -> None:
        """Play actions [B, n] int64 in every row.

        Fills `observation` and `out`. With `auto_reset` a row that is done starts its next episode in the same call and
        its last observation goes to `final_observation`; without, `observation` is its last.
        """

    @abstractmethod
    def text(self, row: int) -> dict[str, str | list[str]]:
        """Return the texts of one row as strings: `manual` (a list of statements) and `goal`."""
