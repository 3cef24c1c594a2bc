"""Best moves where monsters never move: shortest safe paths."""

import numpy as np

from magrounding.envs.assignment import IMPOSSIBLE, assign
from magrounding.envs.rtfm.arrays import COLUMN, COLUMN_STEP, ELEMENT, HELD, PRESENT, ROW, ROW_STEP, STAY, TARGET
from magrounding.envs.rtfm.pursuit import inside
from magrounding.jit import cached_njit, inner_njit


@inner_njit
def survey(side, n, k, actors, where, useful, targets):
    """Take stock of a game, actors [E, NUM_COLUMNS], on an interior of side × side cells.

    Args:
        side, n, k, actors: width of the interior; agents, monsters and entities of the game.
        where: [E], filled with cells (row · side + column of the interior, from 0).
        useful: [E], filled with whether an item beats a target that lives.
        targets: [n], filled with the slots of these targets.

    Returns:
        How many targets live.
    """
    count = 0
    for e in range(len(actors)):
        where[e] = (actors[e, ROW] - 1) * side + actors[e, COLUMN] - 1
        useful[e] = False
        if n <= e < n + k and actors[e, PRESENT] and actors[e, TARGET]:
            targets[count] = e
            count += 1
    for i in range(n + k, len(actors)):
        for j in range(count):
            useful[i] |= actors[i, ELEMENT] == actors[targets[j], ELEMENT]
    return count


@inner_njit
def irreplaceable(a, n, k, actors, useful):
    """Tell whether agent a holds the last item of an element that a living target needs."""
    held = actors[a, HELD]
    if held < 0 or not useful[held]:
        return False
    for i in range(n + k, len(actors)):
        if actors[i, PRESENT] and actors[i, ELEMENT] == actors[held, ELEMENT]:
            return False
    for other in range(n):
        theirs = actors[other, HELD]
        if other != a and actors[other, PRESENT] and theirs >= 0 and actors[theirs, ELEMENT] == actors[held, ELEMENT]:
            return False
    return True


FAR = 1 << 20
"""Distance of what cannot be reached."""
JUNK_TOLL, USEFUL_TOLL = 100, 2000
"""Cost of a path over an item of no use, or over one that a target needs: any way around is shorter."""
UNEVEN = 1e-4
"""Costs rise a little faster than lengths: of divisions of equal total length, the more even one ends sooner."""
LATER = 8000
"""Cost of a target that is out of reach for now: others may clear the way."""


@cached_njit(nogil=True)
def label_stationary(games, rules, entities, labels):
    """Label the first moves of all shortest safe paths, after the division of targets of least total length.

    An agent takes an item of its target's element, then enters the target's cell. It never enters the cell of a monster
    that it cannot beat, nor, armed, that of an item; unarmed it walks around other items where it can. Where an item of
    no use would bar the way on, it takes that one first. Agents without a task stay. `labels` [B, n, 5] bool are filled
    for the rows `games` [R].
    """
    side, n, k, slots = rules.size - 2, rules.agents, rules.monsters, entities.shape[1]
    cells = side * side
    where, useful, targets = np.zeros(slots, np.int64), np.zeros(slots, np.bool_), np.zeros(n, np.int64)
    toll, queue, line = np.zeros(cells, np.int64), np.zeros(cells + 1, np.int64), np.zeros(cells, np.int64)
    to_target, to_item = np.zeros((n, cells), np.int64), np.zeros((slots, cells), np.int64)
    errand = np.zeros((n, n), np.int64)  # slot of the item that an agent takes next on behalf of a target, -1 for none
    costs, choice = np.zeros((n, n)), np.zeros(n, np.int64)
    for b in games:
        actors = entities[b]
        count = survey(side, n, k, actors, where, useful, targets)
        for j in range(count):
            _lay_tolls(n, k, actors, where, useful, actors[targets[j], ELEMENT], toll)
            _measure(where[targets[j]], side, toll, to_target[j], queue)
        _lay_tolls(n, k, actors, where, useful, -1, toll)
        for i in range(n + k, slots):
            if actors[i, PRESENT]:
                _measure(where[i], side, toll, to_item[i], queue)
        costs[:] = 0
        for a in range(n):
            for j in range(count):
                cost, errand[a, j] = _cost_task(
                    a, targets[j], n, k, side, actors, where, useful, to_target[j], to_item, toll, line, queue
                )
                costs[a, j] = cost if cost == IMPOSSIBLE else cost * (1 + UNEVEN * cost)
        assign(costs, choice)
        for a in range(n):
            j, found = choice[a], False
            for move in range(5):
                labels[b, a, move] = False
            if j < count and costs[a, j] < IMPOSSIBLE:
                armed = errand[a, j] < 0
                _lay_tolls(n, k, actors, where, useful, actors[targets[j], ELEMENT] if armed else -1, toll)
                distance = to_target[j] if armed else to_item[errand[a, j]]
                found = _label_first_moves(where[a], side, toll, distance, labels[b, a])
            if not found:
                labels[b, a, STAY] = True


@inner_njit
def _cost_task(a, target, n, k, side, actors, where, useful, to_target, to_item, toll, to_cleared, queue):
    """Return the cost of a target for agent a, in steps and tolls, and the slot of the item to take next (−1: none).

    to_target [N] and to_item [E, N] are distances; toll, to_cleared [N] and queue are scratch.
    """
    held, element = actors[a, HELD], actors[target, ELEMENT]
    least, errand = IMPOSSIBLE, -1
    if not actors[a, PRESENT]:
        return least, errand
    if held >= 0 and actors[held, ELEMENT] == element:
        return float(min(to_target[where[a]], LATER)), errand
    if irreplaceable(a, n, k, actors, useful):
        return least, errand
    for i in range(n + k, len(actors)):
        if not actors[i, PRESENT] or actors[i, ELEMENT] != element or to_item[i, where[a]] >= FAR:
            continue
        cost = to_item[i, where[a]] + min(to_target[where[i]], LATER)
        if cost < least:
            least, errand = float(cost), i
        if to_target[where[i]] < FAR:
            continue
        for other in range(n + k, len(actors)):
            if actors[other, PRESENT] and not useful[other]:
                _lay_tolls(n, k, actors, where, useful, element, toll)
                toll[where[other]] = 1
                _measure(where[target], side, toll, to_cleared, queue)
                cost = to_item[other, where[a]] + to_item[i, where[other]] + to_cleared[where[i]]
                if cost < least:
                    least, errand = float(cost), other
    return least, errand


@inner_njit
def _lay_tolls(n, k, actors, where, useful, element, toll):
    """Fill the cost of entering each cell [N] with an item of that element in hand, or with none that matters (−1)."""
    toll[:] = 1
    for i in range(n + k, len(actors)):
        if actors[i, PRESENT]:
            toll[where[i]] = FAR if element >= 0 else USEFUL_TOLL if useful[i] else JUNK_TOLL
    for m in range(n, n + k):
        if actors[m, PRESENT] and actors[m, ELEMENT] != element:
            toll[where[m]] = FAR


@inner_njit
def _measure(goal, side, toll, distance, queue):
    """distance [N] from each cell to the goal, whose own toll is 1; queue [N + 1] is scratch (Bellman, Ford, Moore)."""
    distance[:] = FAR
    distance[goal] = 0
    queue[0] = goal
    first, last = 0, 1
    while first != last:
        cell = queue[first]
        first = (first + 1) % len(queue)
        through = distance[cell] + (1 if cell == goal else toll[cell])
        if through >= FAR:
            continue
        for move in range(1, 5):
            row, column = cell // side + ROW_STEP[move], cell % side + COLUMN_STEP[move]
            neighbour = row * side + column
            if inside(row, column, side) and through < distance[neighbour]:
                distance[neighbour] = through
                at = first
                while at != last and queue[at] != neighbour:  # no cell waits twice, so the ring never overflows
                    at = (at + 1) % len(queue)
                if at == last:
                    queue[last] = neighbour
                    last = (last + 1) % len(queue)


@inner_njit
def _label_first_moves(start, side, toll, distance, labels):
    """Label the moves [5] that begin a shortest path; returns whether there is one."""
    found = False
    for move in range(1, 5):
        row, column = start // side + ROW_STEP[move], start % side + COLUMN_STEP[move]
        if distance[start] < FAR and inside(row, column, side):
            to = row * side + column
            if distance[start] == distance[to] + (1 if distance[to] == 0 else toll[to]):
                labels[move] = True
                found = True
    return found
