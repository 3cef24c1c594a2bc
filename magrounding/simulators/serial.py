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
from magrounding.simulators.env_adapters import EnvAdapter, adapt
from magrounding.simulators.env_row import EnvRow
from magrounding.simulators.simulator_env import SimulatorVectorEnv
from magrounding.simulators.spaces import common_spec
from magrounding.spec import EnvSpec
from magrounding.vector import DeepCopied, Info, Observation, StepResult, alone, check_actions, check_rows, row_seeds


class SerialVectorEnv(DeepCopied, SimulatorVectorEnv):
    """Envs of a simulator, one after the other in this process; see `vectorize` and `VectorEnv`.

    What a simulator raises reaches the caller; the envs are then to be reset. A copy, or a pickle, has envs of its own,
    which go on where these are.
    """

    def __init__(
        self,
        make_env: Callable[[], Any],
        num_envs: int,
        *,
        id: str,
        options: Mapping[str, Any],
        spec: EnvSpec | None,
        copy: bool,
    ) -> None:
        super().__init__(id, options, num_envs)
        adapters: list[EnvAdapter] = []
        try:
            for _ in range(num_envs):
                adapters.append(adapt(make_env()))  # noqa: PERF401  those made before an error are to be known
            self.spec = common_spec(adapters, spec)
            self._arena = Arena(self.spec, num_envs)
        except BaseException:
            for adapter in adapters:
                with suppress(Exception):  # the first error is the one to see
                    adapter.env.close()
            raise
        self.num_agents = self.spec.num_agents
        self._view = View(self._arena, slice(0, num_envs), (id, self.spec), copy=copy)
        self._rows = [EnvRow(adapter, self.spec, self._arena, row) for row, adapter in enumerate(adapters)]
        self._started = self._closed = False
        self._whole = True  # no step or reset was cut short

    @alone
    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
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
        for number, row in enumerate(self._rows):
            if number in starting:
                row.reset()
            else:
                row.rest()
        self._started = self._whole = True
        return self._view.start(arena.final_observation, None)

    @alone
    def step(self, actions: ArrayLike) -> StepResult:
        self._require_start()
        arena = self._arena
        arena.actions[:] = check_actions(actions, (self.num_envs, self.num_agents), self.spec.num_actions)
        self._whole = False
        for row in self._rows:
            row.step()
        self._whole = True
        return self._view.after(arena.final_observation, None)

    def best_actions(self, rows: ArrayLike | None = None) -> np.ndarray:
        """Return best actions now, [B, n, A] bool, in `rows` [R] (by default all); the others keep older ones."""
        self._require_start()
        require_capability(self, Expert)
        for row in check_rows(rows, self.num_envs).tolist():
            self._rows[row].label()
        return self._arena.labels.copy()

    def state(self) -> np.ndarray:
        self._require_start()
        require_capability(self, HasState)
        for row in self._rows:
            row.write_state()
        return self._arena.state.copy()

    def _on_show(self) -> Arena:
        self._require_start()
        return self._arena

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._started = False
            for row in self._rows:
                row.env.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A vector env whose episodes go on where these are; ConfigurationError for a simulator that has no copies."""
        twin = memo[id(self)] = object.__new__(type(self))
        with self._copyable():
            twin.__dict__.update(copying.deepcopy(vars(self), memo))
        return twin

    def __getstate__(self) -> bytes:
        """Pack the state so that envs of lambdas and of local classes travel."""
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
                f"{name_of(self._rows[0].env)} can be neither copied nor pickled, as it holds what cannot be "
                f"({type(error).__name__}: {error}): make other games, and play these actions in them"
            ) from error

    def _require_start(self) -> None:
        if not self._started:
            raise CallOrderError(
                "the games are closed: make others" if self._closed else "call reset() before anything else"
            )
        if not self._whole:
            raise CallOrderError("an error has cut the games short: call reset() of all of them first")
