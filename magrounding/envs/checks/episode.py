"""Episode: everything that a game has given out, to be played again and compared."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from magrounding.errors import MagroundingError
from magrounding.spec import STATE

Actions = dict[str, int]

STEP_NAMES = ("observations", "rewards", "terminations", "truncations", "infos")
"""Results of `step`, in order."""


class ConformanceError(MagroundingError, AssertionError):
    """An environment breaks a rule; the sentence begins with the name of the `check`."""

    def __init__(self, check: str, message: str) -> None:
        super().__init__(check, message)  # both, so that it can be pickled
        self.check = check

    def __str__(self) -> str:
        return "{}: {}".format(*self.args)


@dataclass
class Episode:
    """Everything that a game has given out, and the actions that made it do so.

    Attributes:
        actions: of each step.
        results: of `reset` (observations, infos) and of each step (the five dicts), as they were when they came.
        states: after each of them; none of a world without a state.
    """

    actions: list[Actions] = field(default_factory=list)
    results: list[tuple[dict[str, Any], ...]] = field(default_factory=list)
    states: list[np.ndarray] = field(default_factory=list)


def require(condition: bool, check: str, message: str) -> None:
    """Raise ConformanceError where a condition does not hold."""
    if not condition:
        raise ConformanceError(check, message)


def record(env: Any, episode: Episode, result: tuple[dict[str, Any], ...]) -> None:
    """Keep a copy of what a call has returned, and of the state after it."""
    episode.results.append(copy.deepcopy(result))
    if STATE in env.spec.capabilities:
        episode.states.append(env.state().copy())


def replay(env: Any, seed: int | None, episode: Episode, start: int = 0, *, scribble: bool = False) -> Episode:
    """Play the actions of an episode again from step `start` on; with a seed, after a reset."""
    again = Episode()

    def keep(result: tuple[dict[str, Any], ...]) -> None:
        record(env, again, result)
        if scribble:
            _scribble(result)

    if seed is not None:
        keep(env.reset(seed=seed))
    for actions in episode.actions[start:]:
        if list(env.agents) != list(actions):
            break  # it has gone another way; the comparison will say where
        again.actions.append(actions)
        keep(env.step(dict(actions)))
    return again


def go_to(env: Any, seed: int, episode: Episode, step: int) -> None:
    """Play an episode again until `step` steps are done."""
    env.reset(seed=seed)
    for actions in episode.actions[:step]:
        env.step(dict(actions))


def _scribble(value: Any) -> None:
    """Overwrite everything that can be."""
    if isinstance(value, np.ndarray):
        value.fill(99)
    elif isinstance(value, dict | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            _scribble(part)
    if isinstance(value, dict | list):
        value.clear()


def compare(check: str, how: str, again: Episode, episode: Episode, start: int = 0) -> None:
    """Raise ConformanceError where an episode played again from step `start` on comes out in another way."""
    results, states = episode.results[start:], episode.states[start:]
    for step, (a, b) in enumerate(zip(again.results, results, strict=False), start):
        names = ("observations", "infos") if len(b) == 2 else STEP_NAMES
        for name, x, y in zip(names, a, b, strict=True):
            where = difference(x, y)
            require(not where, check, f"{how}, {name}{where} of step {step} differs")
    for step, (a, b) in enumerate(zip(again.states, states, strict=False), start):
        require(np.array_equal(a, b), check, f"{how}, state() after step {step} differs")
    require(len(again.results) == len(results), check, f"{how}, the episode has another length")


def difference(a: Any, b: Any) -> str:
    """Return where two nested values differ, as a path; "" where they do not, "." for the values themselves."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        a, b = dict(enumerate(a)), dict(enumerate(b))
    if isinstance(b, np.ndarray):
        return "" if isinstance(a, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b) else "."
    if isinstance(b, Mapping):
        if not isinstance(a, Mapping) or list(a) != list(b):
            return "."
        return next((f"[{key!r}]{path}" for key in b if (path := difference(a[key], b[key]))), "")
    return "" if type(a) is type(b) and a == b else "."
