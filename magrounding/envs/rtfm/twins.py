"""Kernels that draw assignments, targets and items of an episode; and twins.

Twins are the minimal pairs of `eval_minimal`: games 2k and 2k + 1 have the same map, the same draws and the same words,
but two elements have exchanged their modifiers, or two monsters their teams. What wins one of them loses the other.
"""

from __future__ import annotations

from numba import njit

from magrounding.envs.rtfm import arrays
from magrounding.envs.rtfm.prose import holds
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
    scalars[arrays.TEAM_DIVISION] = index // element_ways
    scalars[arrays.ELEMENT_DIVISION] = index % element_ways
    team = below(key, 1, 3)
    scalars[arrays.TEAM] = team
    other_team = (team + 1 + below(key, 2, 2)) % 3
    scalars[arrays.DISTRACTOR_TEAM] = other_team
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
            name = tables.teams[scalars[arrays.TEAM_DIVISION], of_team, below(key, counter + 1, group)]
            monster[arrays.WORD_1] = tables.element_words[element]
            monster[arrays.WORD_2] = tables.monster_words[name]
            monster[arrays.ELEMENT] = element
            monster[arrays.TARGET] = is_target
        if t < rules.items:
            item = entities[n + rules.monsters + t]
            which = below(key, counter + 2, tables.elements.shape[2])
            modifier = tables.elements[scalars[arrays.ELEMENT_DIVISION], element, which]
            item[arrays.WORD_1] = tables.modifier_words[modifier]
            item[arrays.WORD_2] = tables.noun_words[below(key, counter + 3, tables.noun_words.shape[0])]
            item[arrays.ELEMENT] = element


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
        one = entities[first, arrays.ELEMENT]
        other = entities[n + rules.monsters + rules.targets, arrays.ELEMENT]  # the bad item's is the distractor's
        scalars[arrays.EXCHANGED] = 4 * one + other
        teams, elements = scalars[arrays.TEAM_DIVISION], scalars[arrays.ELEMENT_DIVISION]
        if of_teams:
            unique = True
            for t in range(1, rules.targets):
                unique = unique and entities[n + t, arrays.WORD_2] != entities[first, arrays.WORD_2]
            if not unique:
                continue
            here = _index(tables.monster_words, entities[first, arrays.WORD_2])
            there = _index(tables.monster_words, entities[distractor, arrays.WORD_2])
            teams = _exchange_members(tables.teams, teams, here, there)
        else:
            elements = _exchange_groups(tables.elements, elements, one, other)
        if side(teams * ways + elements) == rules.side:
            break
    if scalars[arrays.SEED] & 1 == 0:
        return
    scalars[arrays.TEAM_DIVISION], scalars[arrays.ELEMENT_DIVISION] = teams, elements
    if of_teams:
        entities[first, arrays.TARGET], entities[distractor, arrays.TARGET] = 0, 1
        return
    for item in range(n + rules.monsters, entities.shape[0]):
        if entities[item, arrays.ELEMENT] == one:
            entities[item, arrays.ELEMENT] = other
        elif entities[item, arrays.ELEMENT] == other:
            entities[item, arrays.ELEMENT] = one


@inner_njit
def _index(words, word):
    for i in range(words.shape[0]):
        if words[i] == word:
            return i
    return -1


@inner_njit
def _exchange_groups(divisions, division, one, other):
    """The division in which two groups have exchanged their members."""
    wished = divisions[division].copy()
    for i in range(wished.shape[1]):
        wished[one, i], wished[other, i] = wished[other, i], wished[one, i]
    return _find(divisions, wished)


@inner_njit
def _exchange_members(divisions, division, here, there):
    """The division in which two members have exchanged their groups."""
    wished = divisions[division].copy()
    for g in range(wished.shape[0]):
        for i in range(wished.shape[1]):
            if wished[g, i] == here:
                wished[g, i] = there
            elif wished[g, i] == there:
                wished[g, i] = here
    return _find(divisions, wished)


@inner_njit
def _find(divisions, wished):
    """The number of a division [groups, members], whatever the order of a group's members."""
    way, same = -1, False
    while not same:
        way += 1
        same = True
        for g in range(wished.shape[0]):
            for i in range(wished.shape[1]):
                same = same and holds(divisions[way, g], wished[g, i])
    return way
