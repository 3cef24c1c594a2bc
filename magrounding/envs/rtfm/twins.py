"""Kernels that draw assignments, targets and items of an episode; and twins.

Twins are the minimal pairs of `eval_minimal`: games 2k and 2k + 1 have the same map, the same draws and the same words,
but two elements have exchanged their modifiers, or two monsters their teams. What wins one of them loses the other.
"""

from __future__ import annotations

from numba import njit

from magrounding.envs.rtfm.arrays import (
    DISTRACTOR_TEAM,
    ELEMENT,
    ELEMENT_DIVISION,
    EXCHANGED,
    SEED,
    TARGET,
    TEAM,
    TEAM_DIVISION,
    WORD_1,
    WORD_2,
)
from magrounding.envs.rtfm.splits import draw_assignment, side
from magrounding.jit import inner_njit
from magrounding.seeding import below, hash64

_TRY = 1 << 12


@njit(inline="always")
def draw_task(key, rules, tables, scalars, entities):
    """Draw assignments, targets and items.

    Targets are all of the target team, each with a good item; elements of the first targets are distinct, and none is
    the distractor's. The distractor's element is that of the bad item.
    """
    n = rules.agents
    group = tables.teams.shape[2]
    element_ways = tables.elements.shape[0]
    index = draw_assignment(key, 0, rules.side, tables.teams.shape[0] * element_ways)
    scalars[TEAM_DIVISION] = index // element_ways
    scalars[ELEMENT_DIVISION] = index % element_ways
    team = below(key, 1, 3)
    scalars[TEAM] = team
    other_team = (team + 1 + below(key, 2, 2)) % 3
    scalars[DISTRACTOR_TEAM] = other_team
    order = tables.element_orders[below(key, 3, tables.element_orders.shape[0])]
    # A distractor takes the last element of the order.
    distinct = 3 if rules.monsters + rules.items > 2 * rules.targets else 4
    for t in range(rules.targets + 1):
        counter = 4 + 4 * t
        is_target = t < rules.targets
        element = order[3]
        if is_target:
            element = order[t if t < distinct else below(key, counter, distinct)]
        if t < rules.monsters:
            monster = entities[n + t]
            of_team = team if is_target else other_team
            name = tables.teams[scalars[TEAM_DIVISION], of_team, below(key, counter + 1, group)]
            monster[WORD_1] = tables.element_words[element]
            monster[WORD_2] = tables.monster_words[name]
            monster[ELEMENT] = element
            monster[TARGET] = is_target
        if t < rules.items:
            item = entities[n + rules.monsters + t]
            modifier = tables.elements[
                scalars[ELEMENT_DIVISION], element, below(key, counter + 2, tables.elements.shape[2])
            ]
            item[WORD_1] = tables.modifier_words[modifier]
            item[WORD_2] = tables.noun_words[below(key, counter + 3, tables.noun_words.shape[0])]
            item[ELEMENT] = element


@inner_njit
def draw_twin(key, rules, tables, scalars, entities):
    """Draw a game until its twin, too, is of the split. Odd seeds get the twin.

    Elements: those of the first target and of the distractor exchange their modifiers. Monsters: the first target's
    name and the distractor's exchange their teams, if no other target has this name.
    """
    n, first = rules.agents, rules.agents
    distractor = n + rules.targets
    ways = tables.elements.shape[0]
    attempt = 0
    while True:
        draw_task(hash64(key, _TRY + attempt), rules, tables, scalars, entities)
        of_teams = rules.monsters > rules.targets and below(key, attempt, 2) == 1
        attempt += 1
        one = entities[first, ELEMENT]
        other = entities[n + rules.monsters + rules.targets, ELEMENT]  # the bad item's is the distractor's
        scalars[EXCHANGED] = 4 * one + other
        teams, elements = scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION]
        if of_teams:
            unique = True
            for t in range(1, rules.targets):
                unique = unique and entities[n + t, WORD_2] != entities[first, WORD_2]
            if not unique:
                continue
            here = _index(tables.monster_words, entities[first, WORD_2])
            there = _index(tables.monster_words, entities[distractor, WORD_2])
            teams = _exchange_members(tables.teams, teams, here, there)
        else:
            elements = _exchange_groups(tables.elements, elements, one, other)
        if side(teams * ways + elements) == rules.side:
            break
    if scalars[SEED] & 1 == 0:
        return
    scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION] = teams, elements
    if of_teams:
        entities[first, TARGET], entities[distractor, TARGET] = 0, 1
        return
    for item in range(n + rules.monsters, entities.shape[0]):
        if entities[item, ELEMENT] == one:
            entities[item, ELEMENT] = other
        elif entities[item, ELEMENT] == other:
            entities[item, ELEMENT] = one


@inner_njit
def _index(words, word):
    for i in range(words.shape[0]):
        if words[i] == word:
            return i
    return -1


@inner_njit
def _exchange_groups(divisions, division, one, other):
    """The division in which two groups have exchanged their members."""
    for way in range(divisions.shape[0]):
        same = True
        for g in range(divisions.shape[1]):
            source = other if g == one else one if g == other else g
            for i in range(divisions.shape[2]):
                same = same and divisions[way, g, i] == divisions[division, source, i]
            if not same:
                break
        if same:
            return way
    return division


@inner_njit
def _exchange_members(divisions, division, here, there):
    """The division in which two members have exchanged their groups."""
    for way in range(divisions.shape[0]):
        same = True
        for g in range(divisions.shape[1]):
            for i in range(divisions.shape[2]):
                member = divisions[division, g, i]
                member = there if member == here else here if member == there else member
                found = False
                for j in range(divisions.shape[2]):
                    found = found or divisions[way, g, j] == member
                same = same and found
            if not same:
                break
        if same:
            return way
    return division
