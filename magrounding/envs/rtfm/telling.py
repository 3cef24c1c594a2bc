"""Split manuals: whose own each row is, and what agents tell one another.

Bit r of `OWN` says that row r of the manual is the agent's own, bit r of `TOLD` that it has told that row.
"""

import numpy as np

from magrounding.envs.compiled import copy_row, shuffled_place
from magrounding.envs.rtfm.arrays import (
    FIRST_TELL,
    HALF,
    HELD,
    KIND,
    LIBRARIAN,
    NO_LINES,
    OMITTED,
    OWN,
    PRESENT,
    STAY,
    STEP,
    TALK,
    TOLD,
)
from magrounding.jit import inner_njit
from magrounding.seeding import TASK, TEXT, below, hash64

ELEMENTS = 4
"""Statements of a manual about elements, the first ones; the others are about teams."""
_OF_OWNERS = 1 << 14
"""Counter from which the key of these draws is made; nothing else of an episode draws there."""
_PARTS = 1 << 20


@inner_njit
def slot_of(player, agents):
    """An agent's slot; that of a librarian, who has no body, is the last."""
    return player if player < agents else -1


@inner_njit
def row_of(text_key, k, rules):
    """The row of a manual that statement k stands in."""
    return shuffled_place(text_key, k, rules.statements) if rules.shuffle_manual else k


@inner_njit
def draw_owners(keys, rules, scalars, entities):
    """Draw whose own each row of the manual is, and how many steps are there to talk first.

    Agents sit in a random order. Where statements are split by kind, the seats are two halves, every other seat one: of
    all statements of a kind, each agent of one half gets as many as any other, or one more.
    """
    n, key = rules.players, hash64(keys[TASK], _OF_OWNERS)
    whole = np.int64(rules.talk)
    scalars[TALK] = whole + (below(key, 0, _PARTS) < (rules.talk - whole) * _PARTS)
    for a in range(n):
        actor = entities[slot_of(a, rules.agents)]
        actor[OWN] = 0
        actor[TOLD] = 0
    if n > rules.agents:
        entities[-1, PRESENT] = 0
        entities[-1, HELD] = -1
    half, seats = below(key, 1, 2), hash64(key, 2)
    for k in range(rules.statements):
        if scalars[OMITTED] >> k & 1:
            continue
        seat, team = n - 1, np.int64(k >= ELEMENTS)
        if rules.reading == KIND:
            first, count = (half + team) % 2, rules.statements - ELEMENTS if team else ELEMENTS
            rank = shuffled_place(hash64(key, 3 + team), k - ELEMENTS * team, count)
            seat = first + 2 * (rank % ((n + 1 - first) // 2))
        elif rules.reading == HALF:
            seat = shuffled_place(hash64(key, 3), k, rules.statements) % n
        owner = n - 1 if rules.reading == LIBRARIAN else shuffled_place(seats, seat, n)
        entities[slot_of(owner, rules.agents), OWN] |= 1 << row_of(keys[TEXT], k, rules)


@inner_njit
def may_tell(actor, row, rules):
    """Tell whether a row of the manual is an agent's own and was not told yet, and the agent may tell one more."""
    told = 0
    for r in range(rules.statements):
        told += actor[TOLD] >> r & 1
    living = actor[PRESENT] == 1 or rules.reading == LIBRARIAN
    return living and (actor[OWN] & ~actor[TOLD]) >> row & 1 == 1 and (rules.tells < 0 or told < rules.tells)


@inner_njit
def tell_rows(b, actions, rules, scalars, entities, out):
    """Let the agents of game b tell rows of their manuals; returns whether nothing moves in this step."""
    talking = scalars[STEP] <= scalars[TALK]
    for a in range(rules.players):
        actor, action = entities[slot_of(a, rules.agents)], actions[b, a]
        acts = a == rules.agents or actor[PRESENT] == 1
        if action >= FIRST_TELL:
            legal = may_tell(actor, action - FIRST_TELL, rules)
            out.illegal[b, a] = acts and not legal
            if legal:
                actor[TOLD] |= 1 << (action - FIRST_TELL)
        elif acts and (talking or a == rules.agents):
            out.illegal[b, a] = action != STAY
    return talking


@inner_njit
def told_rows(rules, entities):
    """The rows that any agent has told, as bits."""
    told = 0
    for a in range(rules.players):
        told |= entities[slot_of(a, rules.agents), TOLD]
    return told


@inner_njit
def deal_rows(b, rules, games, views):
    """Show every agent of game b the rows of the manual that are its own or were told, and who told them."""
    entities, rows = games.entities[b], rules.statements
    told = told_rows(rules, entities) if rules.heard != NO_LINES else 0
    for a in range(rules.players):
        own = entities[slot_of(a, rules.agents), OWN]
        for r in range(rows):
            line = views.lines[b, a * rows + r]
            views.told_by[b, a, r] = -1
            if own >> r & 1:
                views.told_by[b, a, r] = 0
                copy_row(views.manual[b, r], line)
            elif told >> r & 1:
                for other in range(rules.players):
                    if entities[slot_of(other, rules.agents), TOLD] >> r & 1:
                        views.told_by[b, a, r] = 1 + other
                copy_row(views.heard[b, r], line)
            else:
                copy_row(line[:0], line)


@inner_njit
def reward_librarian(b, n, out):
    """Give the agent without a body, the last, the mean reward of the n others; it plays on until the game ends."""
    reward = np.float32(0)
    for a in range(n):
        reward += out.rewards[b, a]
    reward /= np.float32(n)
    out.rewards[b, n] = reward
    out.returns[b, n] = reward + (out.returns[b, n] if out.length[b] > 1 else np.float32(0))
    out.truncated[b, n] = out.truncated[b, :n].any()
    out.terminated[b, n] = out.done[b] and not out.truncated[b, n]
    out.alive[b, n] = True
