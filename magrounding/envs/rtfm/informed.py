"""What an agent can go by that reads a part of the manual: for oracles that play, tell and guess from that alone.

Two statements are rarely needed: what is on the map says which monster is the distractor where all others share their
names, and a distractor's team says as much as the goal's.
"""

import numpy as np

from magrounding.envs.rtfm.arrays import (
    COLUMN,
    COLUMN_STEP,
    DISTRACTOR_TEAM,
    ELEMENT,
    FIRST_TELL,
    OWN,
    PRESENT,
    ROW,
    ROW_STEP,
    STAY,
    STEP,
    TALK,
    TARGET,
    TEAM,
    WORD_2,
)
from magrounding.envs.rtfm.dynamics import can_enter
from magrounding.envs.rtfm.telling import ELEMENTS, may_tell, row_of, slot_of, told_rows
from magrounding.jit import cached_njit, inner_njit
from magrounding.seeding import ORDER, TEXT, below, hash64

TAU = np.float32(0.05)
"""An agent that is in danger tells where to stand still costs no more than this share of its chances."""
SPARED = np.float32(0.1)
"""The most that it pays not to take an item that others may need."""
_GUESSES = 1 << 34
"""Counter from which guesses are drawn; those of the world and of other oracles never reach it."""


@inner_njit
def _shown_by_names(n, k, entities):
    """Tell whether the map says who the targets are: there is no distractor, or it alone shares its name with none."""
    alone, distractors = 0, 0
    for m in range(n, n + k):
        same = 0
        for other in range(n, n + k):
            same += entities[other, WORD_2] == entities[m, WORD_2]
        alone += same == 1
        distractors += entities[m, TARGET] == 0 and entities[m, PRESENT] == 1
    return distractors == 0 or (alone == 1 and k > 2)


@inner_njit
def _rows_of_targets(key, rules, scalars, entities):
    """The rows, as bits, of which any says who the targets are; none where the map does. The goal's is the first."""
    if _shown_by_names(rules.agents, rules.monsters, entities):
        return 0, 0
    goal, other = scalars[TEAM], scalars[DISTRACTOR_TEAM]
    return 1 << row_of(key, ELEMENTS + goal, rules), 1 << row_of(key, ELEMENTS + other, rules)


@inner_njit
def _rows_of_elements(key, rules, entities, first, last, of_all):
    """The rows, as bits, about the elements of monsters or items in these slots; `of_all`: not of targets alone."""
    rows = 0
    for e in range(first, last):
        if of_all or entities[e, TARGET] == 1:
            rows |= 1 << row_of(key, entities[e, ELEMENT], rules)
    return rows


@cached_njit(nogil=True)
def write_needed(rules, games, needed):
    """needed [B, S] bool: rows about the elements of targets and, where only it says who they are, the goal's team."""
    n, k = rules.agents, rules.monsters
    for b in range(needed.shape[0]):
        key, scalars, entities = games.keys[b, TEXT], games.scalars[b], games.entities[b]
        rows = _rows_of_targets(key, rules, scalars, entities)[0]
        rows |= _rows_of_elements(key, rules, entities, n, n + k, False)
        for row in range(needed.shape[1]):
            needed[b, row] = rows >> row & 1


@cached_njit(nogil=True)
def imagine(chosen, player, guesses, rules, games, imagined, differs):
    """Write games as an agent sees them, and whether they differ from the true ones.

    Without guesses it sees no item whose element is unknown to it, and none at all as long as it does not know the
    targets: so it keeps away from monsters. With guesses it has, for all of a game, one that fits what it knows: who
    the distractor is, and which element each item beats; all agents guess alike. An agent that owns all statements
    about elements then plays as if alone, and the others keep away.

    Args:
        chosen: [R] rows of the batch.
        player, guesses: the agent, and whether it guesses.
        rules, games: of the world.
        imagined: entities [B, E, NUM_COLUMNS], filled in these rows.
        differs: [B] bool, likewise.
    """
    n, k = rules.agents, rules.monsters
    items, end = n + k, n + k + rules.items
    for b in chosen:
        key, scalars, entities, seen = games.keys[b, TEXT], games.scalars[b], games.entities[b], imagined[b]
        for e in range(seen.shape[0]):
            for column in range(seen.shape[1]):
                seen[e, column] = entities[e, column]
        known = told_rows(rules, entities) | entities[slot_of(player, rules.agents), OWN]
        goal, other = _rows_of_targets(key, rules, scalars, entities)
        certain = goal == 0 or known & (goal | other) != 0
        differs[b] = guesses or not certain
        hides = not certain
        if guesses:
            draws = hash64(games.keys[b, ORDER], _GUESSES)
            if not certain:
                for m in range(k):
                    seen[n + m, TARGET] = 1
                seen[n + below(draws, 0, k), TARGET] = 0
            elements = 0
            for k_ in range(ELEMENTS):
                elements |= 1 << row_of(key, k_, rules)
            single = -1
            for a in range(n):
                if entities[a, OWN] & elements == elements:
                    single = a
            hides = single >= 0 and single != player
            for a in range(n):
                if single == player and a != player:
                    seen[a, PRESENT] = 0
        for i in range(items, end):
            if known >> row_of(key, entities[i, ELEMENT], rules) & 1 == 0:
                if guesses:
                    # A draw from what is open: item i changes places with one of the open items up to itself.
                    count = 0
                    for j in range(items, i + 1):
                        count += known >> row_of(key, entities[j, ELEMENT], rules) & 1 == 0
                    pick = below(hash64(games.keys[b, ORDER], _GUESSES), i, count)
                    for j in range(items, i + 1):
                        if known >> row_of(key, entities[j, ELEMENT], rules) & 1 == 0:
                            if pick == 0:
                                seen[i, ELEMENT], seen[j, ELEMENT] = seen[j, ELEMENT], seen[i, ELEMENT]
                            pick -= 1
                else:
                    differs[b] = True
                    seen[i, ELEMENT] = -1
        if hides:
            seen[items:end, ELEMENT] = -1


@cached_njit(nogil=True)
def spare_items(chosen, player, rules, imagined, labels, costs_to_go):
    """Label, instead of moves that would take an item not known to be of use, others that cost at most SPARED."""
    for b in chosen:
        seen, best, costs, least, takes = imagined[b], labels[b, player], costs_to_go[b, player], SPARED, False
        free = np.zeros(FIRST_TELL, np.bool_)
        for move in range(FIRST_TELL):
            row, column = seen[player, ROW] + ROW_STEP[move], seen[player, COLUMN] + COLUMN_STEP[move]
            free[move] = can_enter(row, column, rules.size)
            for i in range(rules.agents + rules.monsters, seen.shape[0]):
                if seen[i, PRESENT] == 1 and seen[i, ELEMENT] < 0 and seen[i, ROW] == row and seen[i, COLUMN] == column:
                    free[move] = False
            takes |= best[move] and not free[move]
            if free[move]:
                least = min(least, costs[move])
        if takes and seen[player, PRESENT] == 1 and least < SPARED:
            for move in range(FIRST_TELL):
                best[move] = free[move] and costs[move] <= least


@cached_njit(nogil=True)
def label_tells(chosen, tells, rules, games, labels, costs_to_go):
    """Label what to tell, given the best moves of each agent by what it knows, and their costs.

    An agent tells what a teammate may need and was not told: first who the targets are, then what beats them; as long
    as it does not know them, what beats any monster that lives. It does so where to stand still costs at most TAU.

    Args:
        chosen: [R] rows of the batch.
        tells: whether these agents ever tell; they have the actions for it.
        rules, games: of the world.
        labels: [B, n, A] bool; costs_to_go: [B, n, A] float32.
    """
    n, k = rules.agents, rules.monsters
    for b in chosen:
        key, scalars, entities = games.keys[b, TEXT], games.scalars[b], games.entities[b]
        goal, other = _rows_of_targets(key, rules, scalars, entities)
        told, talking = told_rows(rules, entities), scalars[STEP] < scalars[TALK]
        for player in range(rules.players):
            actor, best, costs = entities[slot_of(player, n)], labels[b, player], costs_to_go[b, player]
            best[FIRST_TELL:] = False
            if talking or player == n:
                best[:] = False
                costs[:] = 0
                best[STAY] = True
            if not tells:
                continue
            certain = goal == 0 or (told | actor[OWN]) & (goal | other) != 0
            wanted = goal
            if actor[OWN] & goal & ~told == 0:
                wanted = 0
                for m in range(n, n + k):
                    if entities[m, PRESENT] == 1 and (entities[m, TARGET] == 1 or not certain):
                        wanted |= 1 << row_of(key, entities[m, ELEMENT], rules)
            speaks = False
            costs[FIRST_TELL:] = costs[STAY]
            if costs[STAY] <= TAU:
                for row in range(rules.statements):
                    if wanted >> row & 1 and may_tell(actor, row, rules):
                        if not speaks:
                            best[:] = False
                            costs[:] = 0
                        speaks = best[FIRST_TELL + row] = True
