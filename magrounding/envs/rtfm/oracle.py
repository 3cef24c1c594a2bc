"""Oracles: scripted teams that read the state of the world, the ceiling of reports and teachers for imitation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from magrounding.capabilities import Reasons
from magrounding.envs.oracle import WorldOracle, symmetries
from magrounding.envs.parallel import WorldEnv
from magrounding.envs.rtfm.arrays import (
    COLUMN,
    ELEMENT,
    HELD,
    MANUAL_ROW,
    OBJECT,
    PRESENT,
    RELATION,
    ROW,
    TARGET,
)
from magrounding.envs.rtfm.evasion import label_moving
from magrounding.envs.rtfm.informed import Informed
from magrounding.envs.rtfm.paths import label_stationary
from magrounding.envs.rtfm.prose import BEATS
from magrounding.envs.rtfm.pursuit import MAX_SIDE, Pursuit, solve
from magrounding.envs.rtfm.rollouts import Search, label_by_rollouts
from magrounding.envs.rtfm.world import RTFMWorld
from magrounding.errors import ConfigurationError
from magrounding.jit import cached_njit
from magrounding.schema import Option, options_of
from magrounding.vector import VectorEnv, check_count


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

    Where the manual is split it tells, and knows no more than an agent that reads its own statements and those told: it
    goes for weapons only when it knows the targets and what the weapon beats, and keeps away from monsters until then.
    It tells what a teammate may need, the most useful first, where to stand still costs few of its chances
    (`informed`).

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `rtfm`, `ma_rtfm` or `rock_paper_scissors`.

    Raises:
        ConfigurationError: another env.
    """

    _guesses = False

    def __init__(self, env: VectorEnv | WorldEnv) -> None:
        super().__init__(env, RTFMWorld, "RTFM and rock-paper-scissors")
        rules = self._world._rules
        self._pursuit = None
        self._costs = np.zeros(self._labels.shape, np.float32)
        if rules.moving:
            self._pursuit = _solve_pursuit(min(rules.size - 2, MAX_SIDE), rules.chase_squared, rules.letters)
            self.costs_to_go = self._costs

    def _label(self, rows: np.ndarray) -> None:
        world, labels, costs = self._world, self._labels, self._costs
        if not world.game.is_split:
            self._plan(rows, world._games.entities, labels, costs)
            return
        informed, imagined = Informed(world, rows), world._games.entities.copy()
        best, lost = np.zeros_like(labels[rows]), np.zeros_like(costs[rows])
        for player in range(world._rules.agents):
            imagined[rows] = informed.imagine(player, self._guesses)
            self._plan(rows, imagined, labels, costs)
            best[:, player], lost[:, player] = labels[rows, player], costs[rows, player]
            if self._pursuit is not None:
                informed.spare(player, imagined[rows], best[:, player], lost[:, player])
        informed.tell(best, lost, world.spec.actions.tells > 0 and not self._guesses)
        labels[rows], costs[rows] = best, lost

    def _plan(self, rows: np.ndarray, entities: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> None:
        """Write the best moves in `rows` of games with these entities, and what the others cost."""
        rules = self._world._rules
        if self._pursuit is None:
            label_stationary(rows, rules, entities, labels)
        else:
            label_moving(rows, rules, self._pursuit, entities, labels, costs)

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
    solve(side, chase_squared, monsters_first, representatives, armed, seeking, evading)
    return Pursuit(armed, seeking, evading, turned, symmetry, orbit, side)


@cached_njit(nogil=True)
def _write_reasons(rules, entities, facts, targets, subgoals, statements):
    """targets and subgoals [B, n, H, W], and the rows of the manual about targets [B, n, S], all bool, false before.

    An agent whose item beats a living target has such targets as subgoals, and asks the manual about them alone; the
    subgoals of another are the items that beat its targets. Who a target is, the goal and the teams say; which of them
    an item beats is known only after the manual was asked, so that `targets` does not depend on it.
    """
    items = rules.agents + rules.monsters
    for b in range(entities.shape[0]):
        for a in range(rules.agents):
            game, held = entities[b], entities[b, a, HELD]
            if game[a, PRESENT] == 0:
                continue
            beaten = game[held, ELEMENT] if held >= 0 else -1
            armed, elements = False, 0
            for e in range(rules.agents, items):
                armed |= game[e, PRESENT] == 1 and game[e, TARGET] == 1 and game[e, ELEMENT] == beaten
            for e in range(rules.agents, items):
                if game[e, PRESENT] == 0 or game[e, TARGET] == 0:
                    continue
                targets[b, a, game[e, ROW], game[e, COLUMN]] = True
                if not armed or game[e, ELEMENT] == beaten:
                    subgoals[b, a, game[e, ROW], game[e, COLUMN]] = armed
                    elements |= 1 << game[e, ELEMENT]
            if not armed:
                for e in range(items, items + rules.items):
                    if game[e, PRESENT] == 1 and elements >> game[e, ELEMENT] & 1:
                        subgoals[b, a, game[e, ROW], game[e, COLUMN]] = True
            for f in range(facts.shape[1]):
                if facts[b, f, RELATION] == BEATS and elements >> facts[b, f, OBJECT] & 1:
                    statements[b, a, facts[b, f, MANUAL_ROW]] = True


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
        self.search = found = Search(*map(Option.check, options_of(Search).values(), search or Search()))
        check_count("first_games of Search", found.first_games, 1, found.games)  # they share arrays

    def _plan(self, rows: np.ndarray, entities: np.ndarray, labels: np.ndarray, costs: np.ndarray) -> None:
        if self._pursuit is None:
            super()._plan(rows, entities, labels, costs)
            return
        rules, (keys, scalars, _) = self._world._rules, self._world._games
        label_by_rollouts(rows, rules, self._pursuit, self.search, entities, keys, scalars, labels, costs)


class SilentOracle(Oracle):
    """A team that guesses: the floor of games whose manual is split, and the oracle where it is not.

    Each agent draws, for a game, one of the games that fit its statements and the map, as likely as the world draws
    them, and plays the oracle on it. Where one agent has all statements about elements it alone fights, and the others
    keep away. It learns from what it is told, but tells nothing.

    Args:
        env: a vector env, or a single one (`magrounding.make`), of `ma_rtfm`.
    """

    _guesses = True
