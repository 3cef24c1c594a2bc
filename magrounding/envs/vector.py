"""WorldVectorEnv: a BatchedWorld as a VectorEnv."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import (
    HasFacts,
    HasPlaces,
    HasSnapshots,
    HasState,
    HasTextView,
    Relate,
    require_capability,
)
from magrounding.envs.world import BatchedWorld
from magrounding.errors import ConfigurationError
from magrounding.spec import SCORES
from magrounding.text_view import describe_row
from magrounding.vector import (
    CallOrder,
    DeepCopied,
    Info,
    Observation,
    StepResult,
    alone,
    check_actions,
    check_count,
    row_seeds,
)


class WorldVectorEnv(DeepCopied, CallOrder, HasState, HasSnapshots, HasPlaces, HasFacts, HasTextView):
    """A BatchedWorld as a VectorEnv; `copy` returns fresh arrays instead of buffers that the next step overwrites."""

    def __init__(self, world: BatchedWorld, id: str, options: dict[str, Any], *, copy: bool = False) -> None:
        self.world = world
        self.id = id
        self.options = options
        self.copy = copy
        self.num_envs, self.num_agents = world.num_envs, world.num_agents
        self.spec = world.spec
        self._origin = id, world.spec
        self._scores = SCORES in world.spec.capabilities
        self._played = np.full((self.num_envs, self.num_agents), -1, np.int64)

    @alone
    def reset(self, seed: int | None = None) -> tuple[Observation, Info]:
        """Start afresh, see `VectorEnv.reset`; ConfigurationError for a wrong seed, CallOrderError after `close`."""
        self._require_open()
        self.world.reset(row_seeds(seed, self.num_envs) if seed is not None or not self._begun else None)
        self._begun = True
        return self._own(self.world.observation), self._collect()

    @alone
    def step(self, actions: ArrayLike) -> StepResult:
        """Play one step everywhere, see `VectorEnv.step`; a row that is done restarts in the same step."""
        self._require_start("step")
        actions = self._played[:] = check_actions(actions, (self.num_envs, self.num_agents), self.spec.num_actions)
        self.world.step(actions, True)
        out = self.world.out
        flags = (out.rewards, out.terminated, out.truncated)
        rewards, terminated, truncated = (array.copy() for array in flags) if self.copy else flags
        return self._own(self.world.observation), rewards, terminated, truncated, self._collect()

    def adjust(self, **options: float) -> None:
        """Change options for episodes that begin from now on, as a curriculum does; see `WorldOptions.adjustable`.

        Raises:
            ConfigurationError: an option that cannot be changed while a batch is played, or a wrong value.
        """
        self.world.adjust(**options)

    # Methods of `capabilities`; without `copy` the next call overwrites the state.

    def state(self) -> np.ndarray:
        state = self._able("state", HasState)()
        return state.copy() if self.copy else state

    def describe(self, row: int, agent: int) -> str:
        self._require_start("describe")
        return describe_row(self, self.world.observation, self.world.out, self._played, row, agent)

    def entity_places(self) -> np.ndarray:
        return self._able("entity_places", HasPlaces)()

    def facts(self, row: int) -> tuple[Any, ...]:
        return self._able("facts", HasFacts)(check_count("row", row, 0, self.num_envs - 1))

    def fact_table(self) -> np.ndarray:
        return self._able("fact_table", HasFacts)()

    def fact_accuracy(self, relate: Relate) -> float | None:
        judge = self._able("fact_accuracy", HasFacts)
        if not callable(relate):
            raise ConfigurationError(f"a reader is a function of words and names, got {type(relate).__name__}")
        return judge(relate)

    def snapshot(self) -> dict[str, np.ndarray]:
        return self._able("snapshot", HasSnapshots)()

    @alone
    def restore(self, snapshot: dict[str, np.ndarray]) -> tuple[Observation, Info]:
        """Go on from a snapshot; ConfigurationError for one of another environment, CallOrderError after `close`."""
        self._require_open()
        self.world.restore(snapshot)
        self._played[:] = -1
        self._begun = True
        return self._own(self.world.observation), self._collect()

    def close(self) -> None:
        """End all episodes: nothing can be played any more. Twice is fine."""
        self._closed = True

    def _able(self, what: str, capability: type) -> Any:
        """The method `what` of a world that has a capability, after `reset`."""
        self._require_start(what)
        require_capability(self, capability)
        return getattr(self.world, what)

    def _own(self, observation: Observation) -> Observation:
        return {key: array.copy() for key, array in observation.items()} if self.copy else dict(observation)

    def _collect(self) -> Info:
        out, rows = self.world.out, self.world.final_rows
        score = out.score if self._scores else out.won.astype(np.float32)
        arrays = out.done, out.won, score, out.length, out.returns, out.alive, out.illegal, out.document, rows
        if self.copy:
            arrays = tuple(array.copy() for array in arrays)
        final = {name: array[: len(rows)] for name, array in self.world.final_observation.items()}
        return Info(*arrays, final_observation=self._own(final), origin=self._origin)
