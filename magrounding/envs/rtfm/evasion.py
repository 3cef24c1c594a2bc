"""Best moves where monsters move and chase: those of the greatest expected value one step ahead."""

from __future__ import annotations

import numpy as np
from numba import njit

from magrounding.envs.rtfm.arrays import COLUMN, COLUMN_STEP, ELEMENT, HELD, PRESENT, ROW, ROW_STEP, STAY, TARGET
from magrounding.envs.rtfm.planning import IMPOSSIBLE, assign, irreplaceable, survey
from magrounding.envs.rtfm.pursuit import add_move_odds, inside

TAKES_ANOTHERS = np.float32(0.9)
"""What is left of a move's value if it takes an item that a target needs and the agent does not."""
WASTES_OWN = np.float32(0.01)
"""What is left of it if it destroys a needed item in hand."""
EQUAL = np.float32(0.9998)
"""Moves whose value is at least this share of the best one's are as good: the tables are no more exact."""
HOPELESS = 1e-9


@njit(cache=True, nogil=True)
def label_moving(games, rules, tables, entities, labels):
    """Label every agent's best moves, after the division of targets of greatest joint value.

    How monsters will move is known exactly: they choose on the old state, so it does not depend on what the agents do. Each
    agent then compares its moves by the expectation, over these moves, of the `Pursuit` tables (see `_outlook`).

    Args:
        games: [R] int64, which games to label.
        rules: their configuration.
        tables: the `Pursuit` solved for it.
        entities: [B, E, NUM_COLUMNS].
        labels: [B, n, 5] bool, filled for these games.
    """
    side, n, k, slots = rules.size - 2, rules.agents, rules.monsters, entities.shape[1]
    where, useful, targets = np.zeros(slots, np.int64), np.zeros(slots, np.bool_), np.zeros(n, np.int64)
    errand = np.zeros((n, n), np.int64)  # slot of the item that an agent takes next on behalf of a target, -1 for none
    costs, choice = np.zeros((n, n)), np.zeros(n, np.int64)
    threat, single, value = np.zeros(k, np.bool_), np.ones(k, np.float32), np.zeros(5, np.float32)
    odds, seen = np.zeros((k, 5), np.float32), np.zeros((k, 5), np.int64)
    unmoved, seen_now = np.ones((k, 1), np.float32), np.zeros((k, 1), np.int64)
    for b in games:
        actors = entities[b]
        count = survey(side, n, k, actors, where, useful, targets)
        costs[:] = 0
        for a in range(n):
            _cost_tasks(a, side, n, k, count, actors, useful, targets, tables, threat, seen_now, unmoved, single, costs, errand)
        assign(costs, choice)
        _foresee(side, n, k, rules.chase_squared, actors, odds)
        for a in range(n):
            labels[b, a, :] = False
            if not actors[a, PRESENT]:
                labels[b, a, STAY] = True
                continue
            target, item = -1, -1
            if choice[a] < count and costs[a, choice[a]] < IMPOSSIBLE:
                target, item = targets[choice[a]] - n, errand[a, choice[a]]
            _find_threats(a, target, item, n, k, actors, threat)
            most = _value_moves(
                a, target, item, side, n, k, rules.monsters_first, actors, where, useful, tables, threat, seen, odds, single, value
            )
            for move in range(5):
                labels[b, a, move] = value[move] >= most * EQUAL


@njit(cache=True)
def _cost_tasks(a, side, n, k, count, actors, useful, targets, tables, threat, seen, unmoved, single, costs, errand):
    """costs[a, j] of agent a for each target: how far the logarithm of its outlook falls if it takes it on."""
    costs[a, :count] = IMPOSSIBLE
    if not actors[a, PRESENT]:
        return
    keeps, held = irreplaceable(a, n, k, actors, useful), actors[a, HELD]
    _find_threats(a, -1, -1, n, k, actors, threat)
    turn, at, _ = _look(a, -1, STAY, side, n, k, actors, tables, seen)
    idle = _outlook(at, at, -1, False, tables.armed, tables.evading, threat, seen, unmoved, single)
    for j in range(count):
        target, best = targets[j] - n, np.float32(HOPELESS)
        if held >= 0 and actors[held, ELEMENT] == actors[targets[j], ELEMENT]:
            _find_threats(a, target, -1, n, k, actors, threat)
            turn, at, _ = _look(a, -1, STAY, side, n, k, actors, tables, seen)
            best = _outlook(at, at, target, False, tables.armed, tables.evading, threat, seen, unmoved, single)
            errand[a, j] = -1
        elif not keeps:
            for i in range(n + k, len(actors)):
                if actors[i, PRESENT] and actors[i, ELEMENT] == actors[targets[j], ELEMENT]:
                    _find_threats(a, target, i, n, k, actors, threat)
                    turn, at, orbit = _look(a, i, STAY, side, n, k, actors, tables, seen)
                    table = tables.seeking[orbit]
                    worth = _outlook(at, at, target, False, table, tables.evading, threat, seen, unmoved, single)
                    if worth > best:
                        best, errand[a, j] = worth, i
        if best > HOPELESS:
            costs[a, j] = np.log(max(idle, HOPELESS)) - np.log(best)


@njit(cache=True)
def _value_moves(
    a, target, item, side, n, k, monsters_first, actors, where, useful, tables, threat, seen, odds, single, value
):
    """value [5] of each move of agent a on its way to that item (−1: it has one) and target (−1: none); returns the best."""
    row, column, held = actors[a, ROW] - 1, actors[a, COLUMN] - 1, actors[a, HELD]
    _, at, orbit = _look(a, item, STAY, side, n, k, actors, tables, seen)
    table = tables.armed if item < 0 else tables.seeking[orbit]
    most = np.float32(0)
    for move in range(5):
        value[move] = -1
        cell = (row + ROW_STEP[move]) * side + column + COLUMN_STEP[move]
        if not inside(row + ROW_STEP[move], column + COLUMN_STEP[move], side):
            continue
        _, to, _ = _look(a, item, move, side, n, 0, actors, tables, seen)
        value[move] = _outlook(to, at, target, monsters_first, table, tables.evading, threat, seen, odds, single)
        for i in range(n + k, len(actors)):
            if move != STAY and i != item and actors[i, PRESENT] and where[i] == cell:
                if held >= 0 and useful[held]:
                    value[move] *= WASTES_OWN
                elif useful[i]:
                    value[move] *= TAKES_ANOTHERS
        most = max(most, value[move])
    return most


@njit(cache=True)
def _foresee(side, n, k, chase_squared, actors, odds):
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


@njit(cache=True)
def _find_threats(a, target, item, n, k, actors, threat):
    """threat [k]: the agent's target, and all living monsters but other targets that it beats (if it needs no other item)."""
    held = actors[a, HELD]
    for m in range(k):
        harmless = held >= 0 and item < 0 and actors[n + m, TARGET] and actors[held, ELEMENT] == actors[n + m, ELEMENT]
        threat[m] = actors[n + m, PRESENT] and (m == target or not harmless)


@njit(cache=True)
def _look(a, item, move, side, n, k, actors, tables, seen):
    """See the map as the tables do: through a window around agent a, turned so that the item (−1: none) is where they have it.

    What lies outside the window is seen at its edge.

    Returns:
        Which symmetry it takes, the agent's cell after `move`, and the orbit of the item's cell. seen [k, moves] is filled with
        the monsters' cells after each of their moves (the first is to stay), −1 behind a wall.
    """
    view = tables.side
    row, column = actors[a, ROW] - 1, actors[a, COLUMN] - 1
    top = min(max(row - view // 2, 0), side - view)
    left = min(max(column - view // 2, 0), side - view)
    symmetry, orbit = 0, 0
    if item >= 0:
        place = _see(actors[item, ROW] - 1 - top, actors[item, COLUMN] - 1 - left, view)
        symmetry, orbit = tables.symmetry[place], tables.orbit[place]
    turn = tables.turned[symmetry]
    for m in range(k):
        for reply in range(seen.shape[1]):
            monster_row = actors[n + m, ROW] - 1 + ROW_STEP[reply]
            monster_column = actors[n + m, COLUMN] - 1 + COLUMN_STEP[reply]
            seen[m, reply] = -1
            if inside(monster_row, monster_column, side):
                seen[m, reply] = turn[_see(monster_row - top, monster_column - left, view)]
    return symmetry, turn[_see(row + ROW_STEP[move] - top, column + COLUMN_STEP[move] - left, view)], orbit


@njit(cache=True)
def _see(row, column, view):
    """The window's cell of a place, or the nearest one."""
    return min(max(row, 0), view - 1) * view + min(max(column, 0), view - 1)


@njit(cache=True)
def _outlook(to, at, target, monsters_first, table, evading, threat, seen, odds, single):
    """Expected value of entering cell `to` from cell `at`, once the monsters have moved.

    Monsters are looked up two at a time, as a table knows them, and the pairs are put together as if they were independent
    but for what they share: Π_m s_m · Π_{m < o} p_mo / (s_m s_o), with s_m the expectation for monster m alone and p_mo that
    for a pair. With at most two monsters this is exact.

    Args:
        to, at: cells of the tables; entering a monster's cell is meeting it, before it moves.
        target: index of the monster that must die, or −1.
        monsters_first: monsters move before the agent does.
        table: [N, N, ·] for pairs with the target, evading: [N, N, N + 1] for others.
        threat: [k] monsters that matter.
        seen, odds: [k, moves] cells that monsters reach, and how likely.
        single: [k], scratch.
    """
    k, moves = seen.shape
    nobody = table.shape[2] - 1
    value = np.float32(1)
    for m in range(k):
        if not threat[m]:
            continue
        mean = np.float32(0)
        if m == target:
            for move in range(moves):
                if odds[m, move] > 0:
                    if monsters_first:
                        mean += odds[m, move] * table[at if seen[m, move] == at else to, seen[m, move], nobody]
                    else:
                        mean += odds[m, move] * table[to, to if seen[m, STAY] == to else seen[m, move], nobody]
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
