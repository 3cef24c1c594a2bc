"""Kernels that put a manual together from templates, and write down what it claims, and where.

A manual has units: texts of one or more sentences about one group (an element or a team) or two. Elements are taken in
a random order two by two, and so are two of the teams; each pair is stated by one text about both or by two about one
each. Sentences that say nothing come between. Plain statements alone are written as `generate` does, by the same draws.
"""

import numpy as np
from numba import njit

from magrounding.envs.compiled import shuffled_place
from magrounding.envs.rtfm import arrays
from magrounding.envs.rtfm.constructions import MOST_FILLERS
from magrounding.envs.rtfm.text import MERGED, STATEMENTS
from magrounding.jit import inner_njit
from magrounding.seeding import below, hash64

BEATS, BELONGS, NOTHING = range(3)
"""Kinds of text: modifiers that beat elements, monsters that belong to teams, sentences that say nothing."""
TEMPLATE, KIND, GROUP, PARTNER, PLACE = range(5)
"""Columns of a plan."""
MOST_UNITS = 9
MOST_MENTIONS = 8
MOST_MEMBERS = 6
_PROSE_COUNTER = 1 << 20


@inner_njit
def write_prose(line_order, key, base, shifts, rules, tables, scalars, manual, claims, facts):
    """Write the manual [R, L] of a game, and its claims into facts [F, 9] where there are rows for them.

    Args:
        line_order: whether units are shuffled.
        key: of the draws of plain statements, whose counters start at `base`.
        base: the counter.
        shifts: (elements, teams): offset of the group whose members are stated (`manual="reassigned"`).
        rules, tables, scalars: of the game.
        claims: of the templates (`tables.make_claims`), where facts are to be written.
        manual, facts: what is written.
    """
    plan = np.empty((MOST_UNITS, 5), np.int64)
    words = np.empty(tables.prose.classes.shape[0], np.int64)
    mentions = np.empty((MOST_MENTIONS, MOST_MEMBERS, 4), np.int64)
    sizes = np.empty(MOST_MENTIONS, np.int64)
    own = hash64(key, _PROSE_COUNTER + base)
    at = 64
    if rules.prose:
        units, at = _plan(own, at, rules, tables, scalars, plan)
        order = own
    else:
        units, order = rules.statements, key
        for k in range(units):
            kind = BEATS if k < tables.elements.shape[1] else BELONGS
            pool = tables.prose.pools[kind, 1, 0]
            plan[k, TEMPLATE] = pool[1 + below(key, base + k, pool[0])]
            plan[k, KIND] = kind
            plan[k, GROUP] = k - kind * tables.elements.shape[1]
            plan[k, PARTNER] = 0
    for k in range(units):
        plan[k, PLACE] = shuffled_place(order, k, units) if line_order else k
    triple = below(key, 2 * rules.statements + 3, units // 2) if rules.layout == MERGED else 0
    row, end, written = 0, 0, 0
    for place in range(units):
        k = 0
        while plan[k, PLACE] != place:
            k += 1
        next_row = row_of(rules.layout, place, units, triple)
        if next_row != row:
            manual[row, end:] = 0
            row, end = next_row, 0
        for j in range(words.shape[0]):
            words[j] = tables.prose.classes[j, 1 + below(own, at, tables.prose.classes[j, 0])]
            at += 1
        end = _write(plan[k], words, shifts, tables, scalars, manual[row], end, mentions, sizes)
        if facts.shape[0]:
            written = _claim(plan[k], claims[plan[k, TEMPLATE]], row, mentions, sizes, facts, written)
    manual[row, end:] = 0
    manual[row + 1 :] = 0


@njit(inline="always")
def row_of(layout, place, units, triple):
    """The row of the unit at `place`; merged rows have two each, and row `triple` three if their number is odd."""
    if layout == STATEMENTS:
        return place
    if layout != MERGED:
        return 0
    if units % 2 == 0 or place < 2 * triple + 2:
        return place // 2
    return (place - 1) // 2


@inner_njit
def _plan(key, at, rules, tables, scalars, plan):
    """Choose the units: how many there are, and the counter of the next draw."""
    groups = np.empty(4, np.int64)
    units = 0
    for kind in range(2):
        count = 4 if kind == BEATS else 3
        for g in range(count):
            groups[g] = g
        for g in range(count - 1, 0, -1):
            j = below(key, at, g + 1)
            at += 1
            groups[g], groups[j] = groups[j], groups[g]
        if rules.minimal:
            # The groups whose members a game and its twin exchange are stated together.
            one, other = scalars[arrays.EXCHANGED] // 4, scalars[arrays.EXCHANGED] % 4
            if kind != BEATS:
                one, other = scalars[arrays.TEAM], scalars[arrays.DISTRACTOR_TEAM]
            _bring(groups, count, one, 0)
            _bring(groups, count, other, 1)
            if below(key, at, 2):
                groups[0], groups[1] = groups[1], groups[0]
            at += 1
        for first in range(0, count, 2):
            alone = first + 1 == count
            partner = groups[below(key, at, first)] if alone else groups[first + 1]
            together = not alone and _any(tables.prose, kind, 2) and (rules.pairs or below(key, at + 1, 2) == 0)
            at += 2
            at = _add(key, at, tables.prose, plan, units, kind, 2 if together else 1, groups[first], partner)
            units += 1
            if not together and not alone:
                at = _add(key, at, tables.prose, plan, units, kind, 1, partner, groups[first])
                units += 1
    if _any(tables.prose, NOTHING, 0):
        pool = tables.prose.pools[NOTHING, 0, 0]
        size, fillers = pool[0], below(key, at, MOST_FILLERS + 1)
        first, step = below(key, at + 1, size), 1 + below(key, at + 2, size - 1)
        at += 3
        for f in range(fillers):
            plan[units, TEMPLATE] = pool[1 + (first + f * step) % size]
            plan[units, KIND] = NOTHING
            units += 1
    return units, at


@njit(inline="always")
def _any(prose, kind, groups):
    """Tell whether there is a text of a kind about so many groups."""
    return prose.pools[kind, groups, 0, 0] > 0


@njit(inline="always")
def _bring(groups, count, group, place):
    """Put a group in a place, and what is there where the group was."""
    for g in range(count):
        if groups[g] == group:
            groups[g], groups[place] = groups[place], groups[g]
            return


@inner_njit
def _add(key, at, prose, plan, unit, kind, groups, first, partner):
    """Choose a construction, then one of its templates; the counter of the next draw."""
    constructions = 0
    while constructions < prose.pools.shape[2] and prose.pools[kind, groups, constructions, 0]:
        constructions += 1
    pool = prose.pools[kind, groups, below(key, at, constructions)]
    plan[unit, TEMPLATE] = pool[1 + below(key, at + 1, pool[0])]
    plan[unit, KIND] = kind
    plan[unit, GROUP] = first
    plan[unit, PARTNER] = partner
    return at + 2


@inner_njit
def _write(unit, words, shifts, tables, scalars, line, end, mentions, sizes):
    """Write a unit from word `end` on, and where its lists and names are; the word after it."""
    prose, kind = tables.prose, unit[KIND]
    row, mention = prose.tokens[unit[TEMPLATE]], 0
    for i in range(row.shape[0]):
        token = row[i]
        if token == 0:
            break
        if token > 0:
            line[end] = token
            end += 1
        elif token <= arrays.FIRST_CLASS:
            line[end] = words[arrays.FIRST_CLASS - token]
            end += 1
        elif token in (arrays.FIRST_NAME, arrays.SECOND_NAME):
            name, start = unit[GROUP] if token == arrays.FIRST_NAME else unit[PARTNER], end
            for w in range(prose.name_words.shape[2]):
                if prose.name_words[kind, name, w]:
                    line[end] = prose.name_words[kind, name, w]
                    end += 1
            mentions[mention, 0, 1], mentions[mention, 0, 2], mentions[mention, 0, 3] = name, start, end - 1
            sizes[mention] = 1
            mention += 1
        else:
            size = 0
            for k in range(prose.members.shape[2]):
                member = prose.members[kind, 0, k]
                group = -1
                if token != arrays.SECOND_LIST and _lists(member, kind, unit[GROUP], shifts, tables, scalars):
                    group = 0
                if token != arrays.FIRST_LIST and _lists(member, kind, unit[PARTNER], shifts, tables, scalars):
                    group = 1
                if group < 0:
                    continue
                if size and prose.comma:
                    line[end] = prose.comma
                    end += 1
                line[end] = prose.members[kind, 1, member]
                mentions[mention, size, 0], mentions[mention, size, 1] = group, member
                mentions[mention, size, 2], mentions[mention, size, 3] = end, end
                size += 1
                end += 1
            sizes[mention] = size
            mention += 1
    return end


@njit(inline="always")
def _lists(member, kind, group, shifts, tables, scalars):
    """Tell whether the manual lists a modifier under an element, or a monster under a team."""
    if kind == BEATS:
        division, count, shift = tables.elements[scalars[arrays.ELEMENT_DIVISION]], tables.elements.shape[1], shifts[0]
    else:
        division, count, shift = tables.teams[scalars[arrays.TEAM_DIVISION]], tables.teams.shape[1], shifts[1]
    return holds(division[further(group, shift, count)], member)


@njit(inline="always")
def further(k, shift, count):
    """(k + shift) mod count of a shift below count, without a division."""
    return k + shift if k + shift < count else k + shift - count


@njit(inline="always")
def holds(members, member):
    """Tell whether an array [M] holds a member."""
    for i in range(members.shape[0]):
        if members[i] == member:
            return True
    return False


@inner_njit
def _claim(unit, claims, row, mentions, sizes, facts, written):
    """Write the claims of a unit; how many there are now."""
    for c in range(claims.shape[0]):
        if claims[c, 0] < 0:
            break
        who, group, name = mentions[claims[c, 0]], claims[c, 1], mentions[claims[c, 2], 0]
        for i in range(sizes[claims[c, 0]]):
            if who[i, 0] != group:
                continue
            facts[written, arrays.RELATION] = unit[KIND]
            facts[written, arrays.SUBJECT] = who[i, 1]
            facts[written, arrays.OBJECT] = name[1]
            facts[written, arrays.POLARITY] = claims[c, 3]
            facts[written, arrays.MANUAL_ROW] = row
            facts[written, arrays.SUBJECT_FIRST], facts[written, arrays.SUBJECT_LAST] = who[i, 2], who[i, 3]
            facts[written, arrays.NAME_FIRST], facts[written, arrays.NAME_LAST] = name[2], name[3]
            written += 1
    return written
