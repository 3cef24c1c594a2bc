"""Best moves where monsters move and chase: those of the greatest expected value one step ahead."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.envs.assignment import IMPOSSIBLE, assign
from magrounding.envs.rtfm.arrays import COLUMN, COLUMN_STEP, ELEMENT, HELD, PRESENT, ROW, ROW_STEP, STAY, TARGET
from magrounding.envs.rtfm.paths import irreplaceable, survey
from magrounding.envs.rtfm.pursuit import add_move_odds, inside
from magrounding.jit import cached_njit, inner_njit

TAKES_ANOTHERS = np.float32(0.9)
"""Share of a move's value that is left if it takes an item that a target needs and the agent does not."""
WASTES_OWN = np.float32(0.01)
"""Share that is left if it destroys a needed item in hand."""
EQUAL = np.float32(0.9998)
"""Moves whose value is at least this share of the best one's are as good: the tables are no more exact."""
HOPELESS = 1e-9


class Scratch(NamedTuple):
    """Scratch of `weigh`: what it writes down about one game, E entities, n agents and k monsters of them.

    Attributes:
        where, useful: [E], targets: [n], as `survey` fills them.
        errand: [n, n] slot of the item that an agent takes next on behalf of a target, −1 for none.
        costs, choice: [n, n] and [n] of the division of targets.
        threat, single: [k] who matters, and how one fares against each alone.
        odds, seen: [k, 5] of the monsters' next moves, and where they lead.
        unmoved, seen_now: [k, 1] the same of monsters that stay.
    """

    where: np.ndarray
    useful: np.ndarray
    targets: np.ndarray
    errand: np.ndarray
    costs: np.ndarray
    choice: np.ndarray
    threat: np.ndarray
    single: np.ndarray
    odds: np.ndarray
    seen: np.ndarray
    unmoved: np.ndarray
    seen_now: np.ndarray


@inner_njit
def make_scratch(n, k, slots):
    """A `Scratch` for games of so many agents, monsters and entities."""
    return Scratch(
        np.zeros(slots, np.int64),
        np.zeros(slots, np.bool_),
        np.zeros(n, np.int64),
        np.zeros((n, n), np.int64),
        np.zeros((n, n)),
        np.zeros(n, np.int64),
        np.zeros(k, np.bool_),
        np.ones(k, np.float32),
        np.zeros((k, 5), np.float32),
        np.zeros((k, 5), np.int64),
        np.ones((k, 1), np.float32),
        np.zeros((k, 1), np.int64),
    )


@cached_njit(nogil=True)
def label_moving(games, rules, tables, entities, labels, costs_to_go):
    """Label every agent's best moves, after the division of targets of greatest joint value.

    For the rows `games` [R], `labels` [B, n, 5] bool are filled, and `costs_to_go` [B, n, 5] float32 with the share of
    its chances that an agent loses by a move. `tables` is the `Pursuit` solved for `rules`.
    """
    n = rules.agents
    scratch, values = make_scratch(n, rules.monsters, entities.shape[1]), np.zeros((n, 5), np.float32)
    for b in games:
        weigh(rules, tables, entities[b], scratch, values)
        for a in range(n):
            judge(values[a], labels[b, a], costs_to_go[b, a])


@inner_njit
def judge(values, labels, costs_to_go):
    """Mark an agent's best moves and what the others cost, by the values [5] of its moves; the value of the best.

    Args:
        values: as `weigh` fills them.
        labels: [5] bool, filled.
        costs_to_go: [5] float32, filled: the share of the best value that is lost; 0 of a move into a wall, and
            without chances.
    """
    most = max(values.max(), np.float32(0))
    for move in range(5):
        labels[move] = values[move] >= most * EQUAL
        lost = np.float32(0)
        if most > 0 and values[move] >= 0 and not labels[move]:
            lost = np.float32(1) - values[move] / most
        costs_to_go[move] = lost
    return most


@inner_njit
def weigh(rules, tables, actors, scratch, values):
    """Value every agent's moves: its chances after each, once targets are divided for the greatest joint value.

    The odds of a monster's moves do not depend on what the agents do now, as monsters choose on the old state.
    Each agent compares its own moves by the expectation of the `Pursuit` tables over those moves (see `_outlook`).

    `values` [n, 5] float32 are filled: −1 for a move into a wall, and for all but to stay of the dead, which have 1.
    """
    side, n, k = rules.size - 2, rules.agents, rules.monsters
    where, useful, targets, errand, costs, choice, threat, single, odds, seen, unmoved, seen_now = scratch
    count = survey(side, n, k, actors, where, useful, targets)
    costs[:] = 0
    for a in range(n):
        _cost_tasks(
            a, side, n, k, count, actors, useful, targets, tables, threat, seen_now, unmoved, single, costs, errand
        )
    assign(costs, choice)
    _predict_moves(side, n, k, rules.chase_squared, actors, odds)
    for a in range(n):
        values[a] = -1
        if not actors[a, PRESENT]:
            values[a, STAY] = 1
            continue
        j, target, item = choice[a], -1, -1
        if j < count and costs[a, j] < IMPOSSIBLE:
            target, item = targets[j] - n, errand[a, j]
        for move in range(5):
            row, column = actors[a, ROW] - 1 + ROW_STEP[move], actors[a, COLUMN] - 1 + COLUMN_STEP[move]
            if inside(row, column, side):
                values[a, move] = _outlook(
                    a, move, target, item, side, n, k, rules.letters, actors, tables, threat, seen, odds, single
                )
                if move != STAY:
                    cell = row * side + column
                    values[a, move] *= _share_kept(a, cell, item, n, k, actors, where, useful)


@inner_njit
def _cost_tasks(a, side, n, k, count, actors, useful, targets, tables, threat, seen, unmoved, single, costs, errand):
    """costs[a, j] of agent a for each target: how far the logarithm of its outlook falls if it takes it on."""
    for j in range(count):
        costs[a, j] = IMPOSSIBLE
    if not actors[a, PRESENT]:
        return
    held, keeps, idle = actors[a, HELD], irreplaceable(a, n, k, actors, useful), np.float32(HOPELESS)
    for j in range(-1, count):  # first without a target
        best, target = np.float32(HOPELESS), targets[j] - n if j >= 0 else -1
        armed = j >= 0 and held >= 0 and actors[held, ELEMENT] == actors[targets[j], ELEMENT]
        for item in range(n + k - 1, len(actors)):  # first without an item
            if item < n + k:
                considered = armed or j < 0
            else:
                considered = not armed and not keeps and j >= 0 and actors[item, PRESENT]
                considered = considered and actors[item, ELEMENT] == actors[targets[j], ELEMENT]
            if considered:
                aim = item if item >= n + k else -1
                worth = _outlook(a, STAY, target, aim, side, n, k, False, actors, tables, threat, seen, unmoved, single)
                if j < 0:
                    idle = max(idle, worth)
                elif worth > best:
                    best, errand[a, j] = worth, aim
        if best > HOPELESS:
            costs[a, j] = np.log(idle) - np.log(best)


@inner_njit
def _share_kept(a, cell, item, n, k, actors, where, useful):
    """Return the share of a move's value that is left if an item other than `item` (−1: none) lies where it leads."""
    held = actors[a, HELD]
    for i in range(n + k, len(actors)):
        if i != item and actors[i, PRESENT] and where[i] == cell:
            if held >= 0 and useful[held]:
                return WASTES_OWN
            if useful[i]:
                return TAKES_ANOTHERS
    return np.float32(1)


@inner_njit
def _predict_moves(side, n, k, chase_squared, actors, odds):
    """odds [k, 5] of each monster's next move: it senses the nearest agent, one of the nearest if several are."""
    odds[:] = 0
    for m in range(k):
        row, column = actors[n + m, ROW] - 1, actors[n + m, COLUMN] - 1
        least, ties = 1 << 30, 0
        for a in range(n):
            if actors[a, PRESENT]:
                squared = (actors[a, ROW] - 1 - row) ** 2 + (actors[a, COLUMN] - 1 - column) ** 2
                if squared < least:
                    least, ties = squared, 0
                ties += squared == least
        for a in range(n):
            agent_row, agent_column = actors[a, ROW] - 1, actors[a, COLUMN] - 1
            if actors[a, PRESENT] and (agent_row - row) ** 2 + (agent_column - column) ** 2 == least:
                add_move_odds(row, column, agent_row, agent_column, side, chase_squared, 1.0 / ties, odds[m])


@inner_njit
def _look(a, item, side, n, k, actors, tables, threat, seen):
    """Show the map as the tables have it: a window around agent a, turned so that its item is where they have it.

    What lies outside the window is seen at its edge. Monsters that do not matter are left out: other targets that an
    agent who needs no further item beats.

    Returns:
        Number of the symmetry and of the orbit of the item's cell, top row and left column of the window. seen
        [k, moves] is filled with the monsters' cells after each of their moves (the first is to stay), −1 behind a
        wall, and threat [k] with who matters.
    """
    view, held = tables.side, actors[a, HELD]
    top = min(max(actors[a, ROW] - 1 - view // 2, 0), side - view)
    left = min(max(actors[a, COLUMN] - 1 - view // 2, 0), side - view)
    symmetry, orbit = 0, 0
    if item >= 0:
        place = _see(actors[item, ROW] - 1 - top, actors[item, COLUMN] - 1 - left, view)
        symmetry, orbit = tables.symmetry[place], tables.orbit[place]
    for m in range(k):
        monster = actors[n + m]
        beaten = held >= 0 and item < 0 and monster[TARGET] and actors[held, ELEMENT] == monster[ELEMENT]
        threat[m] = monster[PRESENT] and not beaten
        for move in range(seen.shape[1]):
            row, column = monster[ROW] - 1 + ROW_STEP[move], monster[COLUMN] - 1 + COLUMN_STEP[move]
            seen[m, move] = -1
            if inside(row, column, side):
                seen[m, move] = tables.turned[symmetry, _see(row - top, column - left, view)]
    return symmetry, orbit, top, left


@inner_njit
def _see(row, column, view):
    """The window's cell of a place, or the nearest one."""
    return min(max(row, 0), view - 1) * view + min(max(column, 0), view - 1)


@inner_njit
def _outlook(a, move, target, item, side, n, k, monsters_first, actors, tables, threat, seen, odds, single):
    """Expected value of a move of agent a, once the monsters have moved.

    Monsters are looked up two at a time, as a table knows them, and the pairs are put together as if they were
    independent but for what they share: Π_m s_m · Π_{m < o} p_mo / (s_m s_o), with s_m the expectation for monster m
    alone and p_mo that for a pair. With at most two monsters nothing is lost.

    Args:
        a, move: who goes where; entering a monster's cell is meeting it, before it moves.
        target: index of the monster that it must kill, or −1.
        item: slot of the item that it must first take, or −1.
        side, n, k, monsters_first, actors, tables: of the game; `tables` is the `Pursuit`.
        odds: [k, moves] of the monsters' moves.
        threat, seen, single: [k], [k, moves] and [k], scratch.
    """
    symmetry, orbit, top, left = _look(a, item, side, n, k, actors, tables, threat, seen)
    if target >= 0:
        threat[target] = True
    row, column = actors[a, ROW] - 1 - top, actors[a, COLUMN] - 1 - left
    at = tables.turned[symmetry, _see(row, column, tables.side)]
    to = tables.turned[symmetry, _see(row + ROW_STEP[move], column + COLUMN_STEP[move], tables.side)]
    table = tables.armed if item < 0 else tables.seeking[orbit]
    return _combine(at, to, target, monsters_first, table, tables.evading, threat, seen, odds, single)


@inner_njit
def _combine(at, to, target, monsters_first, table, evading, threat, seen, odds, single):
    """The product of `_outlook`, for cells of the tables."""
    k, moves = seen.shape
    no_monster = table.shape[2] - 1
    value = np.float32(1)
    for m in range(k):
        if not threat[m]:
            continue
        mean = np.float32(0)
        if m == target:
            for move in range(moves):
                if odds[m, move] > 0:
                    if monsters_first:
                        mean += odds[m, move] * table[at if seen[m, move] == at else to, seen[m, move], no_monster]
                    else:
                        mean += odds[m, move] * table[to, to if seen[m, STAY] == to else seen[m, move], no_monster]
        elif seen[m, STAY] != to:
            mean = np.float32(1)
            for move in range(1, moves):
                if seen[m, move] == to:
                    mean -= odds[m, move]
        if mean <= 0:
            return np.float32(0)
        single[m] = mean
        value *= mean
    for m in range(k):
        for o in range(k):
            if not (threat[m] and threat[o]) or o in (m, target) or (m != target and o < m):
                continue
            mean = np.float32(0)
            for move in range(moves):
                if odds[m, move] > 0:
                    row = (table if m == target else evading)[to, to if seen[m, STAY] == to else seen[m, move]]
                    for reply in range(moves):
                        if odds[o, reply] > 0:
                            mean += odds[m, move] * odds[o, reply] * row[seen[o, reply]]
            value *= mean / (single[m] * single[o])
    return value
