"""Kernels that start an episode: draw assignments, targets and items, place entities, write the document; and twins.

Twins are the minimal pairs of `eval_minimal`: games 2k and 2k + 1 have the same map, the same draws and the same words,
but two elements have exchanged their modifiers, or two monsters their teams. What wins one of them loses the other.
"""

import numpy as np
from numba import njit

from magrounding.envs.compiled import RUNNING, copy_row, document_key, shuffled_place
from magrounding.envs.rtfm import arrays
from magrounding.envs.rtfm.prose import further, holds, write_prose
from magrounding.envs.rtfm.splits import draw_assignment, side
from magrounding.envs.rtfm.text import STATEMENTS
from magrounding.jit import inner_njit
from magrounding.seeding import LAYOUT, NUM_STREAMS, ORDER, TASK, TEXT, below, hash64, stream_key

_OF_STATEMENTS, _OF_DISTRACTOR, _OF_NAMES = 1 << 12, 1 << 13, 1 << 15
"""Counters from which keys are made of draws that only some options ask for; nothing else draws there."""
_PARTS = 1 << 20
_TRY = 1 << 12


@njit(inline="always")  # called in one place
def start_games(first, last, rules, tables, games, manual, goal, out):
    """Generate, in each row that is done, the episode that its seed and episode number name, text and all."""
    for b in range(first, last):
        if not out.done[b]:
            continue
        keys, scalars, entities = games.keys[b], games.scalars[b], games.entities[b]
        # Twins are neighbours: they have all draws in common.
        seed = scalars[arrays.SEED] & ~1 if rules.minimal else scalars[arrays.SEED]
        for stream in range(NUM_STREAMS):
            keys[stream] = stream_key(seed, scalars[arrays.EPISODE], stream)
        scalars[arrays.STEP] = 0
        scalars[arrays.DRAWS] = 0
        scalars[arrays.OUTCOME] = RUNNING
        scalars[arrays.TARGETS_LEFT] = rules.agents
        if rules.letters:
            _draw_letters(keys[TASK], tables, scalars, entities)
        else:
            if rules.minimal:
                draw_twin(keys[TASK], rules, tables, scalars, entities)
            else:
                draw_task(keys[TASK], rules, tables, scalars, entities)
                if rules.distinct_names:
                    _name_apart(keys[TASK], rules.agents, tables, scalars, entities)
            _shuffle_monsters(keys[ORDER], rules.agents, rules.monsters, entities)
        _place(keys[LAYOUT], rules.size - 2, entities)
        _abridge(keys[TEXT], keys[TASK], rules, scalars, entities)
        write_text(b, rules, tables, games, manual, goal)
        out.document[b] = document_key(keys[TEXT], 0, salt_of(rules, scalars))
        for a in range(rules.agents):
            entities[a, arrays.HELD] = -1
            out.alive[b, a] = True


@inner_njit
def _name_apart(key, n, tables, scalars, entities):
    """Give the targets, still the first monsters, different names of their team, as long as there are some."""
    names = tables.teams[scalars[arrays.TEAM_DIVISION], scalars[arrays.TEAM]]
    for t in range(n):
        name = names[shuffled_place(hash64(key, _OF_NAMES), t % len(names), len(names))]
        entities[n + t, arrays.WORD_2] = tables.monster_words[name]


@njit(inline="always")
def _shuffle_monsters(key, n, monsters, entities):
    """Cells list monsters in slot order, so slots must not tell targets from the distractor."""
    for k in range(monsters - 1, 0, -1):
        j = below(key, k, k + 1)
        for column in range(entities.shape[1]):
            entities[n + k, column], entities[n + j, column] = entities[n + j, column], entities[n + k, column]


@njit(inline="always")
def _draw_letters(key, tables, scalars, entities):
    """Rock-paper-scissors: a cycle of three letters, the dragon bears one of them, all three lie about."""
    triple = below(key, 0, tables.triples.shape[0])
    scalars[arrays.ELEMENT_DIVISION] = triple
    scalars[arrays.TEAM] = 0
    bearer = below(key, 1, 3)
    entities[1, arrays.WORD_1] = tables.triples[triple, bearer]
    entities[1, arrays.WORD_2] = tables.monster_words[0]
    entities[1, arrays.ELEMENT] = bearer
    entities[1, arrays.TARGET] = 1
    for k in range(3):
        entities[2 + k, arrays.WORD_1] = tables.triples[triple, k]
        entities[2 + k, arrays.WORD_2] = 0
        entities[2 + k, arrays.ELEMENT] = (k + 1) % 3  # letter k beats the next of the cycle


@inner_njit
def _place(key, side, entities):
    """Place all entities on distinct uniform cells of the side × side interior."""
    counter = 0
    for e in range(entities.shape[0]):
        row, column, free = 0, 0, False
        while not free:
            cell = below(key, counter, side * side)
            counter += 1
            row, column = 1 + cell // side, 1 + cell % side
            free = True
            for other in range(e):
                if entities[other, arrays.ROW] == row and entities[other, arrays.COLUMN] == column:
                    free = False
        entities[e, arrays.ROW] = row
        entities[e, arrays.COLUMN] = column
        entities[e, arrays.PRESENT] = 1


@inner_njit
def _abridge(text_key, task_key, rules, scalars, entities):
    """Draw whether the distractor monster stays, and which statements are left out: bit k of OMITTED, statement k.

    Selecting one of seven statements through attention that starts uniform is what keeps txt2π from reading; what a
    selected statement says is learnt fast. So manuals begin short, and grow as a curriculum lets them.
    """
    n, monsters = rules.agents, rules.monsters
    if rules.distraction < 1.0 and below(hash64(task_key, _OF_DISTRACTOR), 0, _PARTS) >= rules.distraction * _PARTS:
        for e in range(n, n + monsters):
            if entities[e, arrays.TARGET] == 0:
                entities[e, arrays.PRESENT] = 0
    scalars[arrays.OMITTED] = 0
    if rules.omission == 0.0 and rules.decoys == 1.0:
        return
    needed = decoys = 0
    for e in range(n, n + monsters):
        if entities[e, arrays.PRESENT] == 1:
            # Statement k of letters says that letter k beats the next of the cycle.
            k = (entities[e, arrays.ELEMENT] + 2) % 3 if rules.letters else entities[e, arrays.ELEMENT]
            if entities[e, arrays.TARGET] == 1:
                needed |= 1 << k
            else:
                decoys |= 1 << k
    distracted, decoys = decoys != 0, decoys & ~needed
    if distracted:
        needed |= 1 << (4 + scalars[arrays.TEAM])
    key = hash64(text_key, _OF_STATEMENTS)
    if below(key, rules.statements, _PARTS) < rules.decoys * _PARTS:
        needed, decoys = needed | decoys, 0
    for k in range(rules.statements):
        if decoys >> k & 1 or (needed >> k & 1 == 0 and below(key, k, _PARTS) < rules.omission * _PARTS):
            scalars[arrays.OMITTED] |= 1 << k


@njit(inline="always")
def write_text(b, rules, tables, games, manual, goal):
    """Write the document (and the goal) of row b; with `resample_text` its templates depend on the step.

    A reassigned document gives every element and every team the members of another one.
    """
    key, scalars = games.keys[b, TEXT], games.scalars[b]
    of_element, of_team, of_goal = tables.element_sentences, tables.team_sentences, tables.goal_sentences
    statements, draws = rules.statements, first_draw(rules, scalars)
    shifts = shifts_of(key, rules, of_element.shape[1], of_team.shape[1])
    if rules.layout == STATEMENTS and not rules.prose:
        for k in range(statements):
            line = manual[b, shuffled_place(key, k, statements) if rules.shuffle_manual else k]
            if scalars[arrays.OMITTED] >> k & 1:
                line[:] = 0
            elif k < of_element.shape[1]:
                stated = further(k, shifts[0], of_element.shape[1])
                members = tables.element_lists[scalars[arrays.ELEMENT_DIVISION], stated]
                copy_row(of_element[below(key, draws + k, of_element.shape[0]), k, members], line)
            else:
                team = k - of_element.shape[1]
                stated = further(team, shifts[1], of_team.shape[1])
                members = tables.team_lists[scalars[arrays.TEAM_DIVISION], stated]
                copy_row(of_team[below(key, draws + k, of_team.shape[0]), team, members], line)
    else:
        claims, facts = np.empty((0, 0, 0), np.int64), np.empty((0, 0), np.int64)  # not needed here
        write_prose(rules.shuffle_manual, key, draws, shifts, rules, tables, scalars, manual[b], claims, facts)
    copy_row(of_goal[below(key, draws + statements, of_goal.shape[0]), scalars[arrays.TEAM], 0], goal[b])


@njit(inline="always")
def salt_of(rules, scalars):
    """Return the salt that distinguishes documents of configurations, and those of twins, which are drawn alike."""
    return rules.salt + (scalars[arrays.SEED] & 1 if rules.minimal else 0) + (scalars[arrays.OMITTED] << 8)


@njit(inline="always")
def first_draw(rules, scalars):
    """The first counter of the templates; those below are for the order of the statements."""
    return rules.statements + (scalars[arrays.STEP] * 16 if rules.resample_text else 0)


@njit(inline="always")
def shifts_of(key, rules, elements, teams):
    """Offset of the group whose members a reassigned manual states, of elements and of teams; else 0."""
    if not rules.reassigned:
        return 0, 0
    # Drawn once an episode, at counters that neither the order nor the templates of any step use.
    return 1 + below(key, 2 * rules.statements + 1, elements - 1), 1 + below(key, 2 * rules.statements + 2, teams - 1)


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
    distinct = 3 if rules.monsters + rules.items > 2 * rules.agents else 4
    for t in range(rules.agents + 1):
        counter = 4 + 4 * t
        is_target = t < rules.agents
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
    distractor = n + rules.agents
    ways = tables.elements.shape[0]
    attempt = 0
    while True:
        draw_task(hash64(key, _TRY + attempt), rules, tables, scalars, entities)
        of_teams = rules.monsters > rules.agents and below(key, attempt, 2) == 1
        attempt += 1
        one = entities[first, arrays.ELEMENT]
        other = entities[n + rules.monsters + rules.agents, arrays.ELEMENT]  # the bad item's is the distractor's
        scalars[arrays.EXCHANGED] = 4 * one + other
        teams, elements = scalars[arrays.TEAM_DIVISION], scalars[arrays.ELEMENT_DIVISION]
        if of_teams:
            unique = True
            for t in range(1, rules.agents):
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
