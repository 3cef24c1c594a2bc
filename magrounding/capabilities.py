"""Capabilities: methods that a vector env may offer beside playing, a protocol for each, and how to ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from magrounding.errors import ConfigurationError
from magrounding.spec import EXPERT, FACTS, PLACES, SNAPSHOT, STATE
from magrounding.vector import Info, Observation, StepResult, VectorEnv

Relate = Callable[[np.ndarray, np.ndarray], np.ndarray | None]
"""(ids of M words [M], ids of the words of N names [N, W]) → how much each game's text relates them [B, M, N]."""


class HasState(Protocol):
    """Environments whose state can be read."""

    def state(self) -> np.ndarray:
        """Return the state of every row, [B, S] int16, laid out as `spec.state_layout()`; no hidden roles, no text."""
        ...


class HasSnapshots(Protocol):
    """Environments that can go on from where they were."""

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return copies of the arrays that decide how all episodes go on, and of what is on show."""
        ...

    def restore(self, snapshot: dict[str, np.ndarray]) -> tuple[Observation, Info]:
        """Go on from a snapshot; return what was on show then."""
        ...


class Expert(Protocol):
    """Experts that know all best actions of every agent."""

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return all best actions now, [B, n, A] bool, at least one, none masked; of `rows` [R], by default all."""
        ...


class HasCostsToGo(Expert, Protocol):
    """Experts that also know the cost of every other action.

    Attributes:
        costs_to_go: [B, n, A] float32 in [0, 1], the share of its chances that each action loses, in the states that
            were labelled last.
    """

    costs_to_go: np.ndarray


class Reasons(NamedTuple):
    """Reasons of an expert's choice, for each agent.

    Attributes:
        targets: [B, n, H, W] bool, the cells of what the agent is there to reach in the end.
        subgoals: [B, n, H, W] bool, the cells of what it has to reach next.
        statements: [B, n, S] bool, the rows of the manual that say what to do about its targets.
    """

    targets: np.ndarray
    subgoals: np.ndarray
    statements: np.ndarray


class HasReasons(Expert, Protocol):
    """Experts that can give reasons."""

    def reasons(self) -> Reasons:
        """Return the reasons of the best actions in the states on show; nothing is true of agents without a task."""
        ...


class HasPlaces(Protocol):
    """Environments that give the places of things."""

    def entity_places(self) -> np.ndarray:
        """Return [B, E, 2] float32: row and column of all that agents can go to, row −1 for what is not there now."""
        ...


class HasFacts(Protocol):
    """Environments that list the claims of their texts; no agent sees them."""

    def facts(self, row: int) -> tuple[Any, ...]:
        """Return the claims of the text of one row, and the words that make them."""
        ...

    def fact_table(self) -> np.ndarray:
        """Return the same for all rows as numbers [B, F, columns], −1 behind the last."""
        ...

    def fact_accuracy(self, relate: Relate) -> float | None:
        """Return the share of the claims of texts on show (neither denied nor retracted) that a reader has right."""
        ...


class HasTextView(Protocol):
    """Vector envs that put observations into words. All of this package do; what they say is in their spec."""

    def describe(self, row: int, agent: int) -> str:
        """Return what an agent's observation of one row holds, and what its last action has come to, as plain text.

        It is made of the agent's own arrays alone, see `text_view.TextView`: manual and goal first, then the map, what
        the agent holds, teammates, legal moves, and what happened. A row that has begun anew says nothing of the game
        before. A ConfigurationError for a row or an agent that there is not, a CallOrderError before `reset`.
        """
        ...


class HasHalves(Protocol):
    """Vector envs that play a step of some rows while the caller thinks about the others.

    Attributes:
        groups: rows of each part of the batch.
    """

    groups: Sequence[slice]

    def send(self, actions: ArrayLike, group: int) -> None:
        """Begin a step of one group with actions [R, n]."""
        ...

    def receive(self) -> StepResult:
        """Wait for the step of all groups; return what `VectorEnv.step` does."""
        ...


_NAMES: dict[type, str] = {HasState: STATE, HasSnapshots: SNAPSHOT, Expert: EXPERT, HasPlaces: PLACES, HasFacts: FACTS}
Offer = TypeVar("Offer")


def find_capability(vec: VectorEnv, kind: type[Offer]) -> Offer | None:
    """Return a vector env as one that offers a capability; None where its spec does not name it."""
    return cast(Offer, vec) if _NAMES[kind] in vec.spec.capabilities else None


def require_capability(vec: VectorEnv, kind: type[Offer]) -> Offer:
    """Return a vector env as one that offers a capability; ConfigurationError where its spec does not name it."""
    found = find_capability(vec, kind)
    if found is None:
        offered = ", ".join(sorted(vec.spec.capabilities)) or "nothing"
        raise ConfigurationError(f"this simulator does not offer {_NAMES[kind]!r}; it has: {offered}")
    return found


def find_costs_to_go(expert: Expert) -> HasCostsToGo | None:
    """Return an expert with costs_to_go; None where it has none, or not in this environment."""
    return None if getattr(expert, "costs_to_go", None) is None else cast(HasCostsToGo, expert)


def require_reasons(expert: Expert) -> HasReasons:
    """Return an expert as one that gives reasons; ConfigurationError where it gives none."""
    if not hasattr(expert, "reasons"):
        raise ConfigurationError("the expert of this environment gives no reasons: learn without `reasons`")
    return cast(HasReasons, expert)


def find_halves(vec: VectorEnv) -> HasHalves | None:
    """Return a vector env that plays by halves; None where it does not, or has but one row."""
    return cast(HasHalves, vec) if len(getattr(vec, "groups", ())) > 1 else None
