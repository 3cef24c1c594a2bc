"""Actor: who chooses actions for a batch of games: a trained team, a scripted one, an oracle, a simulator's own bot."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from magrounding.capabilities import Expert, require_capability
from magrounding.errors import ConfigurationError, choose
from magrounding.registry import env_entry, load
from magrounding.spec import EXPERT, EnvSpec
from magrounding.vector import VectorEnv


class Actor(Protocol):
    """Who chooses actions for a batch.

    What else it may have: `initial_memory(num_envs)`, handed on from call to call; `accepts_rows = True`, a keyword
    `rows` of `act` with the games to think about; `draws = True`, a second argument of `initial_memory` is the seed of
    what it draws; `explains = True`, a keyword `explain` of `act`, after which `aux(memory)` says for each agent what
    its network reports of the choice; `set_last_actions(memory, actions)`, what was done where others decided, too, as
    in people's games; `best_actions(rows)`, labels for imitation; `for_games(vec)`, a player of
    games with other words.
    """

    def act(self, obs: Any, memory: Any, info: Any, greedy: bool = True) -> tuple[Any, Any]: ...


def begin_memory(actor: Any, num_envs: int, seed: int = 0) -> Any:
    """What an actor remembers of games that are about to start; one that draws does so by `seed`."""
    make = getattr(actor, "initial_memory", None)
    if make is None:
        return None
    return make(num_envs, seed) if getattr(actor, "draws", False) else make(num_envs)


class Bot:
    """The expert that lives in the simulators of a vector env, as a player.

    Args:
        vec: games with the capability EXPERT.
    """

    accepts_rows = True

    def __init__(self, vec: VectorEnv) -> None:
        self._expert = require_capability(vec, Expert)
        self._labels = np.zeros((vec.num_envs, vec.num_agents, vec.spec.num_actions), np.bool_)
        self._fresh = False

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """See `Expert.best_actions`; asked again before `act`, it does not think again."""
        some = slice(None) if rows is None else rows
        self._labels[some] = self._expert.best_actions(rows)[some]
        self._fresh = True
        return self._labels

    def act(
        self, obs: Any, memory: Any = None, info: Any = None, greedy: bool = True, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, None]:
        """The first of each agent's best actions, [B, n] int64."""
        if not self._fresh:
            self.best_actions(rows)
        self._fresh = False
        return self._labels.argmax(-1), None


class ExpertActor(Expert, Actor, Protocol):
    """An expert that plays by what it knows."""


def has_expert(env: str, spec: EnvSpec | None = None) -> bool:
    """Whether an environment has an expert, by its oracle or within its simulator.

    Args:
        env: its id.
        spec: of the games in question, as a simulator may have one for some of its tasks only; by default of those that
            the environment makes without options.
    """
    entry = env_entry(env)
    return entry.oracle is not None or EXPERT in (spec or entry.describe()).capabilities


def check_oracle(env: str, oracle: str) -> None:
    """ConfigurationError for what is not the name of another oracle of an environment ("": its own, is always fine)."""
    if not isinstance(oracle, str):
        raise ConfigurationError(f"an oracle is named by a word, got {type(oracle).__name__}")
    others = env_entry(env).other_oracles if env else {}
    if oracle and not others:
        raise ConfigurationError(f"{env or 'this environment'} has no oracle {oracle!r}, nor any other than its own")
    if oracle:
        choose(f"oracle of {env}", oracle, tuple(others))


def make_expert(vec: VectorEnv, oracle: str = "") -> ExpertActor:
    """The expert of a vector env's games.

    Args:
        vec: the games.
        oracle: one of the environment's `EnvEntry.other_oracles`; by default its own.

    Raises:
        ConfigurationError: no vector env, no expert, or none of this name.
    """
    if not isinstance(getattr(vec, "spec", None), EnvSpec):
        raise ConfigurationError(f"an expert is for the games of a vector env, got {vec!r}")
    check_oracle(vec.id, oracle)
    if oracle:
        return load(env_entry(vec.id).other_oracles[oracle])(vec)
    own = env_entry(vec.id).oracle if vec.id else None
    if own is not None:
        return load(own)(vec)
    if EXPERT not in vec.spec.capabilities:
        raise ConfigurationError(
            f"{vec.id or 'this environment'} has no expert that can teach: learn from --demonstrations, or without "
            "imitation"
        )
    return Bot(vec)
