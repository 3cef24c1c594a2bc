"""Living targets of an episode of RTFM, and the items that beat them."""

from __future__ import annotations

from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET
from magrounding.jit import inner_njit


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
