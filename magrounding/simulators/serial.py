"""SerialVectorEnv: simulators one after the other in this process."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import cloudpickle
import numpy as np
from numpy.typing import ArrayLike

from magrounding.capabilities import Expert, HasState, require_capability
from magrounding.errors import CallOrderError, ConfigurationError, MagroundingError
from magrounding.simulators.answers import name_of
from magrounding.simulators.arena import Arena, View
from magrounding.simulators.faces import ParallelFace, face_of
from magrounding.simulators.game import Game
from magrounding.simulators.spaces import common_spec
from magrounding.spec import EnvSpec
from magrounding.vector import (
    Info,
    Observation,
    OwnGames,
    StepResult,
    check_actions,
    check_flags,
    check_rows,
    row_seeds,
)


class SerialVectorEnv(OwnGames, HasState, Expert):
    """Games of a simulator, one after the other in this process; see `vectorize` and `VectorEnv`.

    What a simulator raises reaches the caller; the games are then to be reset. A copy, or a pickle, has games of its
    own, which go on where these are.

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
        self._whole = True  # no step or reset was cut short

    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode.

        Args:
            seed: an integer in [0, 2**62).
            rows: the games [R] that are started, by default all; the others stay as they are.

        Raises:
            ConfigurationError: a seed or rows that are none.
            CallOrderError: after `close`; for some of the games, before a reset of all.
        """
        if self._closed:
            raise CallOrderError("the games are closed: make others")
        if rows is not None:
            self._require_start()
        arena, chosen = self._arena, check_rows(rows, self.num_envs)
        if seed is not None or not self._started:
            arena.seeds[chosen], arena.episode[chosen] = row_seeds(seed, self.num_envs)[chosen], 0
        else:
            arena.episode[chosen] += 1
        self._whole = False
        starting = set(chosen.tolist())
        for row, game in enumerate(self._games):
            if row in starting:
                game.reset()
            else:
                game.rest()
        self._started = self._whole = True
        return self._view.start(arena.final_observation, None)

    def step(self, actions: ArrayLike) -> StepResult:
        """Play one step everywhere; see `VectorEnv.step`."""
        self._require_start()
        arena = self._arena
        arena.actions[:] = check_actions(actions, (self.num_envs, self.num_agents), self.spec.num_actions)
        self._whole = False
        for game in self._games:
            game.step()
        self._whole = True
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A vector env whose games go on where these are; ConfigurationError where the simulator has no copies."""
        twin = memo[id(self)] = object.__new__(type(self))
        with self._copyable():
            twin.__dict__.update(copying.deepcopy(vars(self), memo))
        return twin

    def __getstate__(self) -> bytes:
        """What a pickle is made of, packed so that envs of lambdas and of local classes travel."""
        with self._copyable():
            return cloudpickle.dumps(vars(self))

    def __setstate__(self, state: bytes) -> None:
        self.__dict__.update(cloudpickle.loads(state))

    @contextmanager
    def _copyable(self) -> Iterator[None]:
        try:
            yield
        except MagroundingError:
            raise
        except Exception as error:  # whatever an env holds on to
            raise ConfigurationError(
                f"{name_of(self._games[0].env)} can be neither copied nor pickled, as it holds what cannot be "
                f"({type(error).__name__}: {error}): make other games, and play these actions in them"
            ) from error

    def _require_start(self) -> None:
        if not self._started:
            raise CallOrderError(
                "the games are closed: make others" if self._closed else "call reset() before anything else"
            )
        if not self._whole:
            raise CallOrderError("an error has cut the games short: call reset() of all of them first")
