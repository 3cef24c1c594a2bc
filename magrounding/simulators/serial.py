"""SerialVectorEnv: simulators one after the other in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import Expert, HasState, require_capability
from magrounding.errors import CallOrderError
from magrounding.simulators.arena import Arena, View
from magrounding.simulators.faces import ParallelFace, face_of
from magrounding.simulators.game import Game
from magrounding.simulators.spaces import common_spec
from magrounding.spec import EnvSpec
from magrounding.vector import Info, Observation, StepResult, check_actions, check_flags, check_rows, row_seeds


class SerialVectorEnv(HasState, Expert):
    """Games of a simulator, one after the other in this process; see `vectorize` and `VectorEnv`.

    What a simulator raises reaches the caller; the games are then to be reset.

    Args:
        make_env: makes one env.
        num_envs: B.
        id, options: how the games were made.
        spec: what they show and take, where the env does not say.
        copy: return fresh arrays instead of buffers that the next step overwrites.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        num_envs: int,
        *,
        id: str = "",
        options: Mapping[str, Any] | None = None,
        spec: EnvSpec | None = None,
        copy: bool = False,
    ) -> None:
        self.id, self.options, self.num_envs = id, dict(options or {}), num_envs
        faces: list[ParallelFace] = []
        try:
            for _ in range(num_envs):
                faces.append(face_of(make_env()))  # noqa: PERF401  those made before an error are to be known
            self.spec = common_spec(faces, spec)
            self._arena = Arena(self.spec, num_envs)
        except BaseException:
            for face in faces:
                with suppress(Exception):  # the first error is the one to see
                    face.env.close()
            raise
        self.num_agents = self.spec.num_agents
        self._view = View(self._arena, slice(0, num_envs), (id, self.spec), copy=copy)
        self._games = [Game(face, self.spec, self._arena, row) for row, face in enumerate(faces)]
        self._started = self._closed = False

    def reset(self, seed: int | None = None) -> tuple[Observation, Info]:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode."""
        if self._closed:
            raise CallOrderError("the games are closed: make others")
        arena = self._arena
        if seed is not None or not self._started:
            arena.seeds[:], arena.episode[:] = row_seeds(seed, self.num_envs), 0
        else:
            arena.episode += 1
        for game in self._games:
            game.reset()
        self._started = True
        return self._view.start(arena.final_observation, None)

    def step(self, actions: ArrayLike) -> StepResult:
        """Play one step everywhere; see `VectorEnv.step`."""
        self._require_start()
        arena = self._arena
        arena.actions[:] = check_actions(actions, (self.num_envs, self.num_agents), self.spec.num_actions)
        for game in self._games:
            game.step()
        return self._view.after(arena.final_observation, None)

    def hold(self, rows: np.ndarray) -> None:
        """Leave games as they are in the steps to come.

        Args:
            rows: [B] bool; they must have begun anew in the step before. The actions given for them are ignored.

        Raises:
            ConfigurationError: anything but an array of so many truth values.
        """
        self._arena.held[:] = check_flags("rows", rows, self.num_envs)

    def best_actions(self, rows: ArrayLike | None = None) -> np.ndarray:
        """Best actions now, [B, n, A] bool, in the games `rows` [R] (by default all); the others keep older ones.

        Raises:
            ConfigurationError: a simulator without an expert.
            CallOrderError: before `reset`.
        """
        self._require_start()
        require_capability(self, Expert)
        for row in check_rows(rows, self.num_envs).tolist():
            self._games[row].label()
        return self._arena.labels.copy()

    def state(self) -> np.ndarray:
        """The whole of every game, [B, S] int16; ConfigurationError without the capability."""
        self._require_start()
        require_capability(self, HasState)
        for game in self._games:
            game.write_state()
        return self._arena.state.copy()

    def close(self) -> None:
        """Close all envs; twice is fine."""
        if not self._closed:
            self._closed = True
            self._started = False
            for game in self._games:
                game.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _require_start(self) -> None:
        if not self._started:
            raise CallOrderError(
                "the games are closed: make others" if self._closed else "call reset() before anything else"
            )
