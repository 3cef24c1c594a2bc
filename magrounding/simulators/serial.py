"""SerialVectorEnv: simulators one after the other in this process."""

from __future__ import annotations

import copy as copying
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self

import cloudpickle
from numpy.typing import ArrayLike

from magrounding.errors import CallOrderError, ConfigurationError, MagroundingError
from magrounding.simulators.arena import Arena, View
from magrounding.simulators.simulator_env import SimulatorVectorEnv
from magrounding.simulators.worker import RESET, STEP_BOTH, Recipe, Simulators
from magrounding.vector import DeepCopied, Info, Observation, StepResult, alone, check_actions


class SerialVectorEnv(DeepCopied, SimulatorVectorEnv):
    """Envs of a simulator, one after the other in this process; see `vectorize` and `VectorEnv`.

    What a simulator raises reaches the caller; the envs are then to be reset. A copy, or a pickle, has envs of its own,
    which go on where these are.
    """

    def __init__(self, recipe: Recipe, id: str, options: Mapping[str, Any], copy: bool) -> None:
        super().__init__(id, options, recipe.num_envs)
        self._simulators = Simulators([range(self.num_envs)])
        try:
            self.spec = self._simulators.make(recipe)
            self._arena = self._shown = Arena(self.spec, self.num_envs)
        except BaseException:
            with suppress(Exception):  # the first error is the one to see
                self._simulators.close()
            raise
        self.num_agents = self.spec.num_agents
        self._view = View(self._arena, slice(0, self.num_envs), (id, self.spec), copy=copy)
        self._simulators.enter(self._arena)
        self._whole = True  # no step or reset was cut short

    @alone
    def reset(self, seed: int | None = None, rows: ArrayLike | None = None) -> tuple[Observation, Info]:
        self._require_open()
        if rows is not None:
            self._require_start("reset")
        seeds, chosen = self._seeds(seed), self._select(rows)
        self._name_episodes(seeds, chosen)
        self._play(RESET)
        self._begun = True
        return self._view.start(self._arena.final_observation, None)

    @alone
    def step(self, actions: ArrayLike) -> StepResult:
        self._require_start("step")
        arena = self._arena
        arena.actions[:] = check_actions(actions, (self.num_envs, self.num_agents), self.spec.num_actions)
        self._play(STEP_BOTH)
        return self._view.after(arena.final_observation, None)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._simulators.close()

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
                f"these games can be neither copied nor pickled, as they hold what cannot be "
                f"({type(error).__name__}: {error}): make other games, and play these actions in them"
            ) from error

    def _obey(self, command: bytes) -> None:
        self._simulators.obey(command)

    def _play(self, command: bytes) -> None:
        self._whole = False
        self._obey(command)
        self._whole = True

    def _require_start(self, what: str) -> None:
        super()._require_start(what)
        if not self._whole:
            raise CallOrderError("an error has cut the games short: call reset() of all of them first")
