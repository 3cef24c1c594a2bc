"""Kernels that start an episode: draw the task, place everybody, write the document."""

from __future__ import annotations

from numba import njit

from magrounding.envs.compiled import copy_row, document_key, shuffled_place
from magrounding.envs.rtfm.arrays import (
    COLUMN,
    DRAWS,
    ELEMENT,
    ELEMENT_DIVISION,
    EPISODE,
    HELD,
    OUTCOME,
    PRESENT,
    ROW,
    RUNNING,
    SEED,
    STEP,
    TARGET,
    TARGETS_LEFT,
    TEAM,
    TEAM_DIVISION,
    WORD_1,
    WORD_2,
)
from magrounding.envs.rtfm.layouts import MERGED, STATEMENTS
from magrounding.envs.rtfm.splits import draw_assignment
from magrounding.seeding import LAYOUT, NUM_STREAMS, ORDER, TASK, TEXT, below, stream_key


@njit
def start_games(first, last, rules, tables, games, manual, goal, out):
    """Generate, in each row that is done, the episode that its seed and episode number name, text and all."""
    for b in range(first, last):
        if not out.done[b]:
            continue
        keys, scalars, entities = games.keys[b], games.scalars[b], games.entities[b]
        for stream in range(NUM_STREAMS):
            keys[stream] = stream_key(scalars[SEED], scalars[EPISODE], stream)
        scalars[STEP] = 0
        scalars[DRAWS] = 0
        scalars[OUTCOME] = RUNNING
        scalars[TARGETS_LEFT] = rules.targets
        if rules.letters:
            _draw_letters(keys[TASK], tables, scalars, entities)
        else:
            _draw_task(keys[TASK], rules, tables, scalars, entities)
            _shuffle_monsters(keys[ORDER], rules.agents, rules.monsters, entities)
        _place(keys[LAYOUT], rules.size - 2, entities)
        write_text(b, rules, tables, games, manual, goal)
        out.document[b] = document_key(keys[TEXT], 0, rules.salt)
        for a in range(rules.agents):
            entities[a, HELD] = -1
            out.alive[b, a] = True


@njit(inline="always")
def _draw_task(key, rules, tables, scalars, entities):
    """Who belongs to whom, who must die, and what lies about.

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
    scalars[ELEMENT_DIVISION] = triple
    scalars[TEAM] = 0
    bearer = below(key, 1, 3)
    entities[1, WORD_1] = tables.triples[triple, bearer]
    entities[1, WORD_2] = tables.monster_words[0]
    entities[1, ELEMENT] = bearer
    entities[1, TARGET] = 1
    for k in range(3):
        entities[2 + k, WORD_1] = tables.triples[triple, k]
        entities[2 + k, WORD_2] = 0
        entities[2 + k, ELEMENT] = (k + 1) % 3  # letter k beats the next of the cycle


@njit
def _place(key, side, entities):
    """Everybody on distinct uniform cells of the side × side interior."""
    counter = 0
    for e in range(entities.shape[0]):
        row, column, free = 0, 0, False
        while not free:
            cell = below(key, counter, side * side)
            counter += 1
            row, column = 1 + cell // side, 1 + cell % side
            free = True
            for other in range(e):
                if entities[other, ROW] == row and entities[other, COLUMN] == column:
                    free = False
        entities[e, ROW] = row
        entities[e, COLUMN] = column
        entities[e, PRESENT] = 1


@njit(inline="always")
def write_text(b, rules, tables, games, manual, goal):
    """Write the document (and the goal) of row b; with `resample_text` its templates depend on the step.

    A reassigned document gives every element and every team the members of another one.
    """
    key, scalars = games.keys[b, TEXT], games.scalars[b]
    statements = rules.statements
    draws = statements  # counters below are for the order of the rows
    if rules.resample_text:
        draws += scalars[STEP] * 16
    of_element, of_team, of_goal = tables.element_sentences, tables.team_sentences, tables.goal_sentences
    element_shift, team_shift = 0, 0
    if rules.reassigned:
        # Drawn once an episode, at counters that neither the order nor the templates of any step use.
        element_shift = 1 + below(key, 2 * statements + 1, of_element.shape[1] - 1)
        team_shift = 1 + below(key, 2 * statements + 2, of_team.shape[1] - 1)
    # The row of three is drawn at a counter that nothing else uses.
    triple = below(key, 2 * statements + 3, manual.shape[1]) if rules.layout == MERGED else 0
    row, end = 0, 0
    for place in range(statements):
        if rules.layout == STATEMENTS:
            k = place  # the order is that of the rows
            line = manual[b, shuffled_place(key, k, statements) if rules.shuffle_manual else k]
        else:
            k = _statement_at(key, place, statements) if rules.shuffle_manual else place
            if _row_of(rules.layout, place, statements, triple) != row:
                manual[b, row, end:] = 0
                row, end = row + 1, 0
            line = manual[b, row]
        if k < of_element.shape[1]:
            members = tables.element_lists[scalars[ELEMENT_DIVISION], _further(k, element_shift, of_element.shape[1])]
            sentence = of_element[below(key, draws + k, of_element.shape[0]), k, members]
        else:
            team = k - of_element.shape[1]
            members = tables.team_lists[scalars[TEAM_DIVISION], _further(team, team_shift, of_team.shape[1])]
            sentence = of_team[below(key, draws + k, of_team.shape[0]), team, members]
        if rules.layout == STATEMENTS:
            copy_row(sentence, line)
        else:
            end = append(sentence, line, end)
    if rules.layout != STATEMENTS:
        manual[b, row, end:] = 0
    copy_row(of_goal[below(key, draws + statements, of_goal.shape[0]), scalars[TEAM], 0], goal[b])


@njit(inline="always")
def _statement_at(key, place, statements):
    """Which of the statements is shuffled to `place`."""
    for k in range(statements):
        if shuffled_place(key, k, statements) == place:
            return k
    return place


@njit(inline="always")
def _row_of(layout, place, statements, triple):
    """The row of the statement at `place`; merged rows have two each, and row `triple` three if the number is odd."""
    if layout == STATEMENTS:
        return place
    if layout != MERGED:
        return 0
    if statements % 2 == 0 or place < 2 * triple + 2:
        return place // 2
    return (place - 1) // 2


@njit(inline="always")
def append(source, line, end):
    """Copy the words of `source` (up to its padding) into `line` from `end` on; where they end."""
    for i in range(source.shape[0]):
        if source[i] == 0:
            break
        line[end] = source[i]
        end += 1
    return end


@njit(inline="always")
def _further(k, shift, count):
    """(k + shift) mod count of a shift below count, without a division."""
    return k + shift if k + shift < count else k + shift - count
