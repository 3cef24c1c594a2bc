"""Actor: a source of actions for a batch, such as a trained team, a script, an oracle or a simulator's own bot."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from magrounding.capabilities import Expert, require_capability
from magrounding.errors import ConfigurationError, MagroundingError, check_choice
from magrounding.registry import env_entry, load
from magrounding.spec import EXPERT, EnvSpec
from magrounding.vector import VectorEnv


class NoReply(MagroundingError):
    """A player that is asked, such as a language model, has given no move, and its game ends."""


class Actor(Protocol):
    """Source of actions for a batch: `act` returns them, [B, n] integers, and the memory for the next call.

    Optional: `initial_memory(num_envs)`, handed on from call to call; `accepts_rows = True`, a keyword `rows` of `act`
    with the games to think about; `draws = True`, a second argument of `initial_memory` is the seed of its draws;
    `explains = True`, a keyword `explain` of `act`, after which `aux(memory)` has for each agent what its network
    reports of the choice; `set_last_actions(memory, actions)`, what was done where others decided, too, as in people's
    games; `best_actions(rows)`, labels for imitation; `for_games(vec)`, a player of games with other words.
    """

    def act(self, obs: Any, memory: Any, info: Any, greedy: bool = True) -> tuple[Any, Any]: ...


def begin_memory(actor: Any, num_envs: int, seed: int) -> Any:
    """Return an actor's memory for episodes that are about to start; one that draws does so by `seed`."""
    make = getattr(actor, "initial_memory", None)
    if make is None:
        return None
    return make(num_envs, seed) if getattr(actor, "draws", False) else make(num_envs)


class Bot:
    """The expert within the simulators of a vector env, which has the capability EXPERT, as an actor."""

    accepts_rows = True

    def __init__(self, vec: VectorEnv) -> None:
        self._expert = require_capability(vec, Expert)
        self._labels = np.zeros((vec.num_envs, vec.num_agents, vec.spec.num_actions), np.bool_)
        self._fresh = False

    def best_actions(self, rows: np.ndarray | None = None) -> np.ndarray:
        """Return `Expert.best_actions`, which `act` uses next."""
        some = slice(None) if rows is None else rows
        self._labels[some] = self._expert.best_actions(rows)[some]
        self._fresh = True
        return self._labels

    def act(
        self, obs: Any, memory: Any = None, info: Any = None, greedy: bool = True, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, None]:
        """Return the first of each agent's best actions, [B, n] int64."""
        if not self._fresh:
            self.best_actions(rows)
        self._fresh = False
        return self._labels.argmax(-1), None


class ExpertActor(Expert, Actor, Protocol):
    """Expert that acts as well."""


def has_expert(env: str, spec: EnvSpec | None = None) -> bool:
    """Return whether an environment has an expert, as an oracle or within its simulator.

    A simulator may have one for some tasks only: `spec` is of the options in question, by default of none.
    """
    entry = env_entry(env)
    return entry.oracle is not None or EXPERT in (spec or entry.describe()).capabilities


def check_oracle(env: str, oracle: str) -> None:
    """Raise a ConfigurationError for a name of no other oracle of an environment ("", its own, is always fine)."""
    if not isinstance(oracle, str) or oracle:
        others = env_entry(env).other_oracles if env else {}
        check_choice(f"oracle of {env or 'this environment'} other than its own", oracle, others)


def make_expert(vec: VectorEnv, oracle: str = "") -> ExpertActor:
    """Return the expert of a vector env, its own or the `oracle` of this name of `EnvEntry.other_oracles`.

    No vector env, no expert, or none of this name is a ConfigurationError.
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
            f"{vec.id or 'this environment'} has no oracle: name another player, or learn from demonstrations=FILES"
        )
    return Bot(vec)
