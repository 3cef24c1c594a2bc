"""Vector environments: many games behind one `reset` and one `step`."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from magrounding.envs.world import BatchedWorld
from magrounding.errors import ConfigurationError, InvalidAction
from magrounding.observation import ObservationSpec
from magrounding.vocabulary import Vocabulary

Observation = dict[str, np.ndarray]


class VectorEnv(Protocol):
    """B games of n agents that restart by themselves.

    `reset` and `step` return per-agent arrays [B, n, …] and shared arrays [B, …]; see `WorldVectorEnv.step` for `info`.
    """

    id: str
    options: dict[str, Any]
    num_envs: int
    num_agents: int
    spec: ObservationSpec
    vocabulary: Vocabulary
    action_names: tuple[str, ...]
    max_cycles: int
    time_limit_is_loss: bool
    state_layout: dict[str, tuple[slice, tuple[int, ...]]]
    info: dict[str, Any]

    def reset(self, seed: int | None = None) -> Observation: ...

    def step(self, actions: ArrayLike) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]: ...

    def state(self) -> np.ndarray: ...

    def snapshot(self) -> dict[str, np.ndarray]: ...

    def restore(self, snapshot: dict[str, np.ndarray]) -> Observation: ...

    def close(self) -> None: ...


def row_seeds(seed: int | None, num_envs: int) -> np.ndarray:
    """Seeds [B] int64 of the rows: row b plays seed + b; without a seed, one drawn from the operating system."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**62:
        raise ConfigurationError(f"a seed is an integer in [0, 2**62), not {seed!r}")
    return np.arange(seed, seed + num_envs, dtype=np.int64)


def _integers(actions: ArrayLike) -> np.ndarray:
    """Actions as a contiguous int64 array; InvalidAction for anything but whole numbers."""
    try:
        array = np.asarray(actions)
    except ValueError:  # lists of different lengths
        array = np.zeros(0, object)
    if array.dtype.kind not in "iu":
        raise InvalidAction(f"actions must be an array of integers, got {type(actions).__name__} of {array.dtype}")
    return np.ascontiguousarray(array, np.int64)


class WorldVectorEnv:
    """The vector face of a BatchedWorld.

    Args:
        world: the games.
        id, options: how the world was made, so that others can make it again.
        copy: return fresh arrays instead of buffers that the next step overwrites.
    """

    def __init__(self, world: BatchedWorld, id: str, options: dict[str, Any], *, copy: bool = False) -> None:
        self.world = world
        self.id = id
        self.options = options
        self.copy = copy
        self.num_envs = world.num_envs
        self.num_agents = world.num_agents
        self.spec = world.spec
        self.vocabulary = world.vocabulary
        self.action_names = world.action_names
        self.max_cycles = world.max_cycles
        self.time_limit_is_loss = world.time_limit_is_loss
        self.state_layout = world.state_layout
        self.info: dict[str, Any] = {}
        self._started = False

    def reset(self, seed: int | None = None) -> Observation:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode."""
        if seed is not None or not self._started:
            self.world.reset(row_seeds(seed, self.num_envs))
            self._started = True
        else:
            self.world.reset()
        self.info = self._collect()
        return self._own(self.world.observation)

    def step(self, actions: ArrayLike) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one step everywhere; a finished game restarts in the same step.

        Args:
            actions: [B, n] integers in [0, A); those of dead agents are ignored.

        Returns:
            observation: per-agent keys [B, n, …], shared keys [B, …]: of the new episode where a game has just ended.
            rewards: [B, n] float32.
            terminated, truncated: [B, n] bool, true in the step of the end only.
            info: `done`, `won` [B] bool; `length` [B] int32 and `return` [B, n] float32 of the episode (final where
                done); `final_rows` [F] and `final_observation` (the last observations of those rows only); `alive`,
                `illegal` [B, n] bool; `document` [B] int64, the key of the text on show.

        Raises:
            InvalidAction: an action outside [0, A), anything but integers, a wrong shape, or a step before `reset`.
        """
        if not self._started:
            raise InvalidAction("call reset() before step()")
        actions = _integers(actions)
        if actions.shape != (self.num_envs, self.num_agents):
            raise InvalidAction(f"actions have shape {actions.shape}, expected {(self.num_envs, self.num_agents)}")
        if (actions.view(np.uint64) >= self.spec.num_actions).any():  # negative ones are huge
            raise InvalidAction(
                f"actions must lie in [0, {self.spec.num_actions}), got {actions.min()} … {actions.max()}"
            )
        self.world.step(actions, True)
        self.info = self._collect()
        out = self.world.out
        flags = (out.rewards, out.terminated, out.truncated)
        rewards, terminated, truncated = (array.copy() for array in flags) if self.copy else flags
        return self._own(self.world.observation), rewards, terminated, truncated, self.info

    def state(self) -> np.ndarray:
        """[B, state_size] int16, see `BatchedWorld.state`."""
        return self.world.state()

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of the arrays that decide how all games go on (see `BatchedWorld.snapshot`)."""
        return self.world.snapshot()

    def restore(self, snapshot: dict[str, np.ndarray]) -> Observation:
        """Go on from a snapshot; returns the observation that was on show, `info` is filled too."""
        self.world.restore(snapshot)
        self._started = True
        self.info = self._collect()
        return self._own(self.world.observation)

    def close(self) -> None:
        """Nothing to release: the world is plain memory."""

    def _own(self, observation: Observation) -> Observation:
        return {key: array.copy() for key, array in observation.items()} if self.copy else dict(observation)

    def _collect(self) -> dict[str, Any]:
        out, rows = self.world.out, self.world.final_rows
        info: dict[str, Any] = {
            "done": out.done,
            "won": out.won,
            "length": out.length,
            "return": out.returns,
            "alive": out.alive,
            "illegal": out.illegal,
            "document": out.document,
            "final_rows": rows,
        }
        if self.copy:
            info = {key: array.copy() for key, array in info.items()}
        info["final_observation"] = self._own({k: v[: len(rows)] for k, v in self.world.final_observation.items()})
        return info
