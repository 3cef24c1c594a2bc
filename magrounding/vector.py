"""VectorEnv: many envs of any simulator behind one `reset` and one `step`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from operator import index
from typing import Any, Protocol, Self, SupportsIndex, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from magrounding.brief import brief
from magrounding.errors import CallOrderError, ConfigurationError, InvalidAction
from magrounding.spec import EnvSpec

Observation = dict[str, np.ndarray]

PER_AGENT = {
    "rewards": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "alive": np.bool_,
    "illegal": np.bool_,
    "returns": np.float32,
}
PER_ENV = {"done": np.bool_, "won": np.bool_, "score": np.float32, "length": np.int32, "document": np.int64}
"""Arrays [B, n] and [B] of a step beside observations, and their dtypes; see `Info`."""


@dataclass
class Info(Mapping[str, Any]):
    """Results of a step beside observation, reward and flags; also a mapping: `info["won"]`, `info["return"]`.

    Attributes:
        done: [B] bool, episodes that ended in this step (their rows began the next).
        won: [B] bool, those of them that were won.
        score: [B] float32, of the episode so far, final where `done`; won or not (1, 0) where a world has no score.
        length: [B] int32, steps of the episode so far, final where `done`.
        returns: [B, n] float32, undiscounted sum of rewards, likewise; key "return".
        alive: [B, n] bool, agents that act next.
        illegal: [B, n] bool, agents whose action was masked and did nothing.
        document: [B] int64 key of the episode's shared texts: equal keys mean equal texts.
        final_rows: [F] int64, rows whose episode ended.
        final_observation: their last observations, [F, …] for each key.
        fault: [B] bool, episodes that ended as their simulator died or hung; None where that cannot be.
        origin: id and spec of the env, so that a team can refuse what it was not trained for; no key of the mapping.
    """

    __repr__ = brief

    done: np.ndarray
    won: np.ndarray
    score: np.ndarray
    length: np.ndarray
    returns: np.ndarray
    alive: np.ndarray
    illegal: np.ndarray
    document: np.ndarray
    final_rows: np.ndarray
    final_observation: Observation
    fault: np.ndarray | None = None
    origin: tuple[str, EnvSpec] | None = None

    @property
    def lost(self) -> np.ndarray:
        """[B] bool, episodes that a fault of their simulator ended in this step, no rule and no agent."""
        return np.zeros_like(self.done) if self.fault is None else self.done & self.fault

    def __getitem__(self, name: str) -> Any:
        return getattr(self, _KEYS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(_KEYS)

    def __len__(self) -> int:
        return len(_KEYS)


_NAMES = (field.name for field in fields(Info) if field.name != "origin")
_KEYS = {"return" if name == "returns" else name: name for name in _NAMES}


class DeepCopied:
    """Base of envs whose copies are deep: a shallow copy would play the same episode."""

    def __copy__(self) -> Self:
        return copy.deepcopy(self)


Call = TypeVar("Call", bound=Callable[..., Any])


def alone(method: Call) -> Call:
    """A method of a batch for one thread at a time: a call from another meanwhile is a CallOrderError.

    Two threads in one step would play wrong games and say nothing. It costs half a microsecond.
    """

    @wraps(method)
    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        turn = vars(self).setdefault("_turn", [True])
        try:
            turn.pop()  # atomic, and unlike a lock it is copied and pickled
        except IndexError:
            raise CallOrderError(
                f"another thread plays in these games at this moment ({method.__name__}): give each thread its own"
            ) from None
        try:
            return method(self, *arguments, **named)
        finally:
            turn.append(True)

    return call  # type: ignore[return-value]


StepResult = tuple[Observation, np.ndarray, np.ndarray, np.ndarray, Info]
"""Observations, rewards, terminated, truncated and the rest, see `VectorEnv.step`."""


class VectorEnv(Protocol):
    """B envs of n agents that restart by themselves, in the same step (Gymnasium's same-step autoreset).

    Arrays are per agent [B, n, …] or, of shared fields, [B, …]; the next call may overwrite them.

    What `spec.capabilities` names is there as well, see `capabilities`.

    Attributes:
        id, options: how the envs were made, so that others can make them again; "" for envs that are not registered.
        num_envs, num_agents: B and n.
        spec: what they show and take.
    """

    id: str
    options: dict[str, Any]
    num_envs: int
    num_agents: int
    spec: EnvSpec

    def reset(self, seed: int | None = None) -> tuple[Observation, Info]:
        """Start afresh: row b plays seed + b. Without a seed every row goes on to its next episode."""
        ...

    def step(self, actions: ArrayLike) -> StepResult:
        """Play actions [B, n] integers in [0, A), those of dead agents being ignored.

        Returns:
            observation (of the new episode where one has ended), rewards [B, n] float32, terminated and truncated
            [B, n] bool (true in the step of the end only), info.

        Raises:
            InvalidAction: an action outside [0, A), anything but integers, or a wrong shape.
            CallOrderError: before `reset`, or after `close`.
        """
        ...

    def close(self) -> None:
        """Release what the envs hold."""
        ...


def row_seeds(seed: int | None, num_envs: int) -> np.ndarray:
    """Return seeds [B] int64 of the rows: row b plays seed + b; without a seed, one drawn from the operating system."""
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    seed = check_count("a seed", seed, 0, 2**62 - 1)
    return np.arange(seed, seed + num_envs, dtype=np.int64)


def check_count(name: str, number: Any, least: int, most: int = 2**31 - 1) -> int:
    """Return a whole number within bounds; ConfigurationError for anything else, `True` among it."""
    try:
        whole = -1 if isinstance(number, bool | np.bool_) else index(number)
    except TypeError:
        whole = -1
    if not least <= whole <= most:
        raise ConfigurationError(f"{name} must be an integer from {least} to {most:,}, got {number!r}")
    return whole


def check_rows(rows: ArrayLike | None, num_envs: int) -> np.ndarray:
    """Return numbers [R] int64 of some rows of a batch, None being all; ConfigurationError for others."""
    if rows is None:
        return np.arange(num_envs)
    array = _array(rows)
    if not array.size:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or ((array < 0) | (array >= num_envs)).any():
        raise ConfigurationError(f"rows are a list of games of this batch, integers in [0, {num_envs}), got {rows!r}")
    return array.astype(np.int64)


def _array(values: ArrayLike) -> np.ndarray:
    """Return an array of any kind; one object for lists of different lengths."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.array(None)


def check_flags(name: str, flags: Any, count: int) -> np.ndarray:
    """Return truth values [count]; ConfigurationError for anything but an array of those."""
    if not isinstance(flags, np.ndarray) or flags.dtype != np.bool_ or flags.shape != (count,):
        raise ConfigurationError(f"{name} is an array of {count} truth values, got {flags!r}")
    return flags


def observation_of(spec: EnvSpec, observation: Mapping[str, Any], row: int, agent: int) -> Observation:
    """Return one agent's part of a batch of observations: views of its arrays."""
    return {each.name: observation[each.name][row if each.shared else (row, agent)] for each in spec.fields}


def check_actions(actions: ArrayLike, shape: tuple[int, ...], num_actions: int) -> np.ndarray:
    """Return actions as a contiguous int64 array of this shape; InvalidAction for anything but integers in [0, A)."""
    array = _array(actions)
    if array.dtype.kind not in "iu" or array.shape != shape:
        raise InvalidAction(f"actions are integers of shape {shape}, got {array.dtype} of shape {array.shape}")
    array = np.ascontiguousarray(array, np.int64)
    if (array.view(np.uint64) >= num_actions).any():  # negative ones are huge
        raise InvalidAction(f"actions must lie in [0, {num_actions}), got {array.min()} … {array.max()}")
    return array


def action_numbers(actions: Mapping[str, SupportsIndex], agents: Sequence[str], num_actions: int) -> list[int]:
    """Return each agent's action, in their order; InvalidAction for anything but an integer in [0, A) for each."""
    if not isinstance(actions, Mapping) or actions.keys() != set(agents):
        raise InvalidAction(f"actions are a dict with one for each of {list(agents)}, got {actions!r}")
    numbers = []
    for agent in agents:
        try:
            number = index(actions[agent])
        except TypeError:
            number = -1
        if not 0 <= number < num_actions:
            raise InvalidAction(f"action {actions[agent]!r} of {agent} is not an integer in [0, {num_actions})")
        numbers.append(number)
    return numbers


class CallOrder:
    """Base of games, one or many, that refuse calls before `reset` and after `close`."""

    _begun = _closed = False

    def _require_open(self) -> None:
        """Raise CallOrderError after `close`."""
        if self._closed:
            raise CallOrderError("the env is closed: make another")

    def _require_start(self, what: str) -> None:
        """Raise CallOrderError before `reset` and after `close`."""
        self._require_open()
        if not self._begun:
            raise CallOrderError(f"call reset() before {what}()")
