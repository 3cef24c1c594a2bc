"""Oracle: a scripted team that reads the world's state, the ceiling of reports and a teacher for imitation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from magrounding.capabilities import Reasons
from magrounding.envs.oracle import WorldOracle, symmetries
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm import evasion, paths, pursuit, reasons
from magrounding.envs.rtfm.pursuit import MAX_SIDE, Pursuit
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import ConfigurationError
from magrounding.jit import cached_njit
from magrounding.vector import VectorEnv


class Oracle(WorldOracle[RTFMWorld]):
    """The best moves of every agent of RTFM, of multi-agent RTFM and of rock-paper-scissors, planned on the rules.

    It reads no text: it knows who the targets are, what beats them and how monsters choose, but not what they will
    choose. A plan is a function of the state alone. Every step the targets are divided anew by the assignment of least
    total cost, one for each agent; an agent's index matters for nothing but to break exact ties.

    Where monsters stand still (`paths`) the cost is the number of steps. All first moves of shortest safe paths are
    best, and an agent without a task stays. One agent loses only what cannot be won; several too, but in rare crowds.

    Where monsters chase (`evasion`) the cost is the fall of the logarithm of an agent's chances. These come from tables
    of one agent among two monsters on an empty map, solved by value iteration (`pursuit`); more monsters are put
    together pair by pair. A move is judged by the true odds of the next step and by this estimate from then on. With
    one agent that leaves out the items that an armed agent must walk around: on 6×6 it wins 0.942 of `simple`, where
    solving every layout with its items gives 0.946. Several agents plan apart, each as if all monsters were after it:
    a strong team, and no proof of how well a team could do. On maps wider than 10×10 an agent plans for the window of
    that size around it. The time limit is ignored, as games that can be won end long before.

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `rtfm`, `ma_rtfm` or `rock_paper_scissors`.

    Raises:
        ConfigurationError: another env.
    """

    def __init__(self, env: VectorEnv | WorldEnv) -> None:
        super().__init__(env, RTFMWorld, "RTFM and rock-paper-scissors")
        rules = self._world._rules
        self._pursuit = None
        if rules.moving:
            self._pursuit = _solve_pursuit(min(rules.size - 2, MAX_SIDE), rules.chase_squared, rules.monsters_first)
            self.costs_to_go = np.zeros(self._labels.shape, np.float32)

    def _label(self, rows: np.ndarray) -> None:
        rules, entities = self._world._rules, self._world._games.entities
        if self._pursuit is None:
            _label_stationary(rows, rules, entities, self._labels)
        else:
            _label_moving(rows, rules, self._pursuit, entities, self._labels, self.costs_to_go)

    def reasons(self) -> Reasons:
        """Return the monsters that each agent can have to kill, what it has to reach next, and what the manual says.

        That is, the statements about what beats its targets; of a reassigned manual, the false ones.

        Raises:
            ConfigurationError: rock-paper-scissors.
        """
        world, rules = self._world, self._world._rules
        if rules.letters:
            raise ConfigurationError("the oracle of rock-paper-scissors gives no reasons: learn without them")
        grid, manual = world.spec.grid.shape[:2], world.spec["manual"].shape[:1]
        found = Reasons(
            *(np.zeros((world.num_envs, world.num_agents, *each), np.bool_) for each in (grid, grid, manual))
        )
        _write_reasons(rules, world._games.entities, world.fact_table(), *found)
        return found


@lru_cache(maxsize=8)
def _solve_pursuit(side: int, chase_squared: float, monsters_first: bool) -> Pursuit:
    """Tables of an interior of side × side cells; half a second for 10×10 maps."""
    turned, symmetry, orbit, representatives = symmetries(side)
    cells = side * side
    shape = (cells, cells, 1 if monsters_first else cells + 1)
    armed, evading = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    seeking = np.zeros((len(representatives), *shape), np.float32)
    _solve(side, chase_squared, monsters_first, representatives, armed, seeking, evading)
    return Pursuit(armed, seeking, evading, turned, symmetry, orbit, side)


@cached_njit(nogil=True)
def _label_stationary(*arguments):
    paths.label_stationary(*arguments)


@cached_njit(nogil=True)
def _label_moving(*arguments):
    evasion.label_moving(*arguments)


@cached_njit(nogil=True)
def _solve(*arguments):
    pursuit.solve(*arguments)


@cached_njit(nogil=True)
def _write_reasons(*arguments):
    reasons.write_reasons(*arguments)
