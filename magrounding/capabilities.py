"""Capabilities: what a vector env may offer beside playing, a protocol for each, and how to ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from magrounding.errors import ConfigurationError
from magrounding.spec import EXPERT, FACTS, PLACES, SNAPSHOT, STATE
from magrounding.vector import Info, Observation, StepResult, VectorEnv

Relate = Callable[[np.ndarray, np.ndarray], np.ndarray | None]
"""(ids of M words [M], ids of the words of N names [N, W]) → how much each game's text relates them [B, M, N]."""


class HasState(Protocol):
    """Whose games can be seen whole."""

    def state(self) -> np.ndarray:
        """The whole of every game, [B, S] int16, laid out as `spec.state_layout()`."""
        ...


class HasSnapshots(Protocol):
    """Whose games can go on from where they were."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of the arrays that decide how all games go on."""
        ...

    def restore(self, snapshot: dict[str, np.ndarray]) -> tuple[Observation, Info]:
        """Go on from a snapshot: what was on show then."""
        ...


class Expert(Protocol):
    """Who knows all best actions of every agent."""

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """All best actions now, [B, n, A] bool, never none, never a masked one; of games `rows` [R], by default all."""
        ...


class HasRegrets(Expert, Protocol):
    """An expert who judges: it also knows how bad the other actions are.

    Attributes:
        regrets: [B, n, A] float32 in [0, 1], which share of its chances each action loses, in the states that
            were labelled last.
    """

    regrets: np.ndarray


class HasPlaces(Protocol):
    """Who says where things are."""

    def entity_places(self) -> np.ndarray:
        """[B, E, 2] float32: row and column of all that agents can go to, row −1 for what is not there now."""
        ...


class HasFacts(Protocol):
    """Who says what the texts claim; no agent sees it."""

    def facts(self, row: int) -> tuple[Any, ...]:
        """What the text of one game claims, and with which words."""
        ...

    def fact_table(self) -> np.ndarray:
        """The same for all games as numbers [B, F, columns], −1 behind the last."""
        ...

    def fact_accuracy(self, relate: Relate) -> float | None:
        """The part of what the texts on show say that a reader has right."""
        ...


class HasHalves(Protocol):
    """Who plays a step of some games while the caller thinks about the others.

    Attributes:
        groups: rows of each part of the batch.
    """

    groups: Sequence[slice]

    def send(self, actions: ArrayLike, group: int) -> None:
        """Begin a step of one group: actions [R, n]."""
        ...

    def receive(self) -> StepResult:
        """Wait for the step of all groups: what `VectorEnv.step` returns."""
        ...


_NAMES: dict[type, str] = {
    HasState: STATE,
    HasSnapshots: SNAPSHOT,
    Expert: EXPERT,
    HasPlaces: PLACES,
    HasFacts: FACTS,
}
Offer = TypeVar("Offer")


def find_capability(vec: VectorEnv, kind: type[Offer]) -> Offer | None:
    """A vector env as one that offers this; None where its spec does not say so."""
    return cast(Offer, vec) if _NAMES[kind] in vec.spec.capabilities else None


def require_capability(vec: VectorEnv, kind: type[Offer]) -> Offer:
    """A vector env as one that offers this; ConfigurationError where its spec does not say so."""
    found = find_capability(vec, kind)
    if found is None:
        offered = ", ".join(sorted(vec.spec.capabilities)) or "nothing"
        raise ConfigurationError(f"this simulator does not offer {_NAMES[kind]!r}; it has: {offered}")
    return found


def find_regrets(expert: Expert) -> HasRegrets | None:
    """An expert as one who judges; None of one who cannot, or not in these games."""
    return None if getattr(expert, "regrets", None) is None else cast(HasRegrets, expert)


def find_halves(vec: VectorEnv) -> HasHalves | None:
    """A vector env as one that plays by halves; None where it does not, or has but one row."""
    return cast(HasHalves, vec) if len(getattr(vec, "groups", ())) > 1 else None
