"""RolloutOracle: moves of the rule-based oracle, improved by roll-outs of it in a model of the game."""

from __future__ import annotations

import math

import numpy as np

from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm import rollouts
from magrounding.envs.rtfm.oracle import Oracle
from magrounding.envs.rtfm.rollouts import Search
from magrounding.errors import ConfigurationError
from magrounding.jit import cached_njit
from magrounding.plain import plain
from magrounding.vector import VectorEnv, check_count


class RolloutOracle(Oracle):
    """The rule-based oracle, which tries out other moves where its own choice is contested.

    Where monsters stand still, nothing is left to chance and nothing is changed. Where they chase and some agent is not
    safe, each agent tries the moves whose value by the rules is nearly that of the best: a few games are played
    from there in a model, by the rules, with random draws of its own. The best of these moves is taken if it beats that
    of the rules in fresh games by more than the doubt. Agents try one after another, each knowing what those before it
    have chosen (multi-agent roll-out, Bertsekas 2021, "Multiagent reinforcement learning: rollout and policy
    iteration"). The model knows the rules and the state on show, and never the draws that the world will make. The same
    seed gives the same moves.

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `rtfm`, `ma_rtfm` or `rock_paper_scissors`, whose
            monsters chase in every task.
        search: how much is tried; by default what is fast enough to teach.

    Raises:
        ConfigurationError: another env, or a search that cannot be.
    """

    def __init__(self, env: VectorEnv | WorldEnv, search: Search | None = None) -> None:
        super().__init__(env)
        self.search = found = search or Search()
        games = check_count("games of a search", found.games, 1)
        check_count("first_games of a search", found.first_games, 1, games)
        check_count("depth of a search", found.depth, 1)
        for name, most in (("nearly", 1), ("safe", 1), ("margin", 1), ("doubt", math.inf)):
            number = plain(getattr(found, name))
            if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= most:
                raise ConfigurationError(f"{name} of a search is a number from 0 to {most}, got {number!r}")

    def _label(self, rows: np.ndarray) -> None:
        if self._pursuit is None:
            super()._label(rows)
            return
        assert self.costs_to_go is not None
        rules, (keys, scalars, entities) = self._world._rules, self._world._games
        labels, costs_to_go = self._labels, self.costs_to_go
        _label_by_rollouts(rows, rules, self._pursuit, self.search, entities, keys, scalars, labels, costs_to_go)


@cached_njit(nogil=True)
def _label_by_rollouts(*arguments):
    rollouts.label_by_rollouts(*arguments)
