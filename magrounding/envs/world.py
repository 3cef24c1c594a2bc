"""BatchedWorld: what a simulator of many games must provide; agents, flags and seeds are bookkeeping on top of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from magrounding.brief import brief
from magrounding.capabilities import Relate
from magrounding.envs.render import Scene
from magrounding.spec import EnvSpec


@dataclass
class StepBuffers:
    """What one step of B games writes, valid until the next step.

    Attributes:
        rewards: [B, n] float32.
        terminated, truncated: [B, n] bool, true in the step an agent's episode ends only.
        alive: [B, n] bool, who acts next (after a restart: everybody).
        illegal: [B, n] bool, whose action was masked and therefore did nothing.
        done, won: [B] bool, games that ended in this step, and which of those were won.
        length: [B] int32, steps of the episode so far; where `done`, its final length.
        returns: [B, n] float32, undiscounted sum of rewards of the episode, likewise.
        document: [B] int64, key of the text on show: equal keys mean equal text.
        score: [B] float32, of the episode so far, final where `done`; written only by worlds that have one.
    """

    __repr__ = brief

    rewards: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    alive: np.ndarray
    illegal: np.ndarray
    done: np.ndarray
    won: np.ndarray
    length: np.ndarray
    returns: np.ndarray
    document: np.ndarray
    score: np.ndarray

    @classmethod
    def allocate(cls, num_envs: int, num_agents: int) -> StepBuffers:
        each, game = (num_envs, num_agents), (num_envs,)
        return cls(
            rewards=np.zeros(each, np.float32),
            terminated=np.zeros(each, np.bool_),
            truncated=np.zeros(each, np.bool_),
            alive=np.ones(each, np.bool_),
            illegal=np.zeros(each, np.bool_),
            done=np.zeros(game, np.bool_),
            won=np.zeros(game, np.bool_),
            length=np.zeros(game, np.int32),
            returns=np.zeros(each, np.float32),
            document=np.zeros(game, np.int64),
            score=np.zeros(game, np.float32),
        )


class BatchedWorld(ABC):
    """B games of one configuration, simulated in flat arrays.

    Attributes:
        num_envs, num_agents: B and n.
        spec: what the world is; what its capabilities name is there to be called.
        observation: dict of batch buffers laid out as `spec.allocate` (shared keys without the agent axis).
        final_observation: the same; its first `len(final_rows)` rows are the last observations of the games that ended.
        final_rows: [F] int64, which games those were.
        out: StepBuffers.
    """

    num_envs: int
    num_agents: int
    spec: EnvSpec
    observation: dict[str, np.ndarray]
    final_observation: dict[str, np.ndarray]
    final_rows: np.ndarray
    out: StepBuffers

    @abstractmethod
    def reset(self, seeds: np.ndarray | None = None) -> None:
        """Start episode 0 of each row's seed ([B] int64), or, without seeds, every row's next episode.

        Fills `observation` and `out`.
        """

    @abstractmethod
    def step(self, actions: np.ndarray, auto_reset: bool) -> None:
        """Play actions [B, n] int64 in every game.

        Fills `observation` and `out`. With `auto_reset` a finished game starts its next episode in the same call and
        its last observation goes to `final_observation`; without, `observation` is its last.
        """

    @abstractmethod
    def text(self, row: int) -> dict[str, str | list[str]]:
        """The texts of one game as strings: `manual` (a list of statements) and `goal`."""

    def state(self) -> np.ndarray:
        """[B, state_size] int16: the whole of every game, laid out as `spec.state_layout()`; no hidden roles, no text.

        Capability "state".
        """
        raise NotImplementedError

    def entity_places(self) -> np.ndarray:
        """[B, E, 2] float32: row and column of everything that agents can go to, row -1 for what is not there now.

        Capability "places".
        """
        raise NotImplementedError

    def facts(self, row: int) -> tuple[Any, ...]:
        """What the text of one game claims, and with which words; capability "facts"."""
        raise NotImplementedError

    def fact_table(self) -> np.ndarray:
        """The same for all games as numbers [B, F, columns], −1 behind the last; capability "facts"."""
        raise NotImplementedError

    def fact_accuracy(self, relate: Relate) -> float | None:
        """The part of what the texts on show say (not deny, not take back) that a reader has right; capability "facts".

        Args:
            relate: gives how much the texts relate some words to some names, or None where it cannot.
        """
        raise NotImplementedError

    def events(self) -> dict[str, np.ndarray]:
        """What agents did in the last step, and what they hold, each [B, n] integers; capability "events".

        "kills": monsters that an agent has killed in it, where there are any to kill; "held": the number of the thing
        that it holds now, −1 for nothing. Of a game that has begun anew in the step only what it holds is known.
        """
        raise NotImplementedError

    def scene(self, row: int) -> Scene:
        """One game as a picture's worth of facts, for the renderers; capability "scene"."""
        raise NotImplementedError

    def snapshot(self) -> dict[str, np.ndarray]:
        """Copies of all arrays that decide how the games go on, and of what is on show; capability "snapshot"."""
        raise NotImplementedError

    def restore(self, snapshot: dict[str, np.ndarray]) -> None:
        """Go on from a snapshot of a world of the same configuration; ConfigurationError for another's.

        Capability "snapshot".
        """
        raise NotImplementedError
