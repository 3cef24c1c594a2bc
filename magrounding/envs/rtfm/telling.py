"""Split manuals: whose own each row is, and what agents tell one another.

`scalars[OWNER + r]` is the agent whose own row r of the manual is, that number plus n once it has told the row, and −1
of an empty row; `scalars[STATEMENT + r]` is the statement in it.
"""

import numpy as np

from magrounding.envs.compiled import copy_row, shuffled_place
from magrounding.envs.rtfm.arrays import (
    FIRST_TELL,
    HALF,
    KIND,
    NO_LINES,
    OMITTED,
    OWNER,
    PRESENT,
    STATEMENT,
    STEP,
    TALK,
)
from magrounding.jit import inner_njit
from magrounding.seeding import TASK, TEXT, below, hash64

ELEMENTS = 4
"""Statements of a manual about elements, the first ones; the others are about teams."""
_OF_OWNERS = 1 << 14
"""Counter from which the key of these draws is made; nothing else of an episode draws there."""
_PARTS = 1 << 20


@inner_njit
def draw_owners(keys, rules, scalars):
    """Draw whose own each row of the manual is, and how many steps are there to talk first.

    Agents sit in a random order. Where statements are split by kind, the seats are two halves, every other seat one: of
    all statements of a kind, each agent of one half gets as many as any other, or one more.
    """
    n, key = rules.players, hash64(keys[TASK], _OF_OWNERS)
    whole = np.int64(rules.talk)
    scalars[TALK] = whole + (below(key, 0, _PARTS) < (rules.talk - whole) * _PARTS)
    half = below(key, 1, 2)
    for k in range(rules.statements):
        row = shuffled_place(keys[TEXT], k, rules.statements) if rules.shuffle_manual else k
        owner, team = n - 1, np.int64(k >= ELEMENTS)
        if rules.reading == KIND:
            first, count = (half + team) % 2, rules.statements - ELEMENTS if team else ELEMENTS
            rank = shuffled_place(hash64(key, 3 + team), k - ELEMENTS * team, count)
            owner = shuffled_place(hash64(key, 2), first + 2 * (rank % ((n + 1 - first) // 2)), n)
        elif rules.reading == HALF:
            owner = shuffled_place(hash64(key, 2), shuffled_place(hash64(key, 3), k, rules.statements) % n, n)
        scalars[OWNER + row] = -1 if scalars[OMITTED] >> k & 1 else owner
        scalars[STATEMENT + row] = k


@inner_njit
def may_tell(player, row, rules, scalars, entities):
    """Tell whether a row of the manual is an agent's own and was not told, and it lives and may tell one more."""
    told = 0
    for r in range(rules.statements):
        told += scalars[OWNER + r] == player + rules.players
    lives = player == rules.agents or entities[player, PRESENT] == 1
    return lives and scalars[OWNER + row] == player and (rules.tells < 0 or told < rules.tells)


@inner_njit
def tell_rows(b, actions, rules, scalars, entities, out):
    """Let the agents of game b tell rows of their manuals; returns whether nothing moves in this step."""
    talking = scalars[STEP] <= scalars[TALK]
    for a in range(rules.players):
        action = actions[b, a]
        if action >= FIRST_TELL:
            legal = may_tell(a, action - FIRST_TELL, rules, scalars, entities)
            out.illegal[b, a] = not legal and (a == rules.agents or entities[a, PRESENT] == 1)
            if legal:
                scalars[OWNER + action - FIRST_TELL] += rules.players
        elif a == rules.agents or (talking and entities[a, PRESENT] == 1):
            out.illegal[b, a] = action != 0
    return talking


@inner_njit
def deal_rows(b, rules, scalars, views):
    """Show every agent of game b the rows of the manual that are its own or were told, and who told them."""
    n, rows = rules.players, rules.statements
    for a in range(n):
        for r in range(rows):
            owner, line, told_by, source = scalars[OWNER + r], views.lines[b, a * rows + r], -1, views.manual[b, r, :0]
            if owner >= 0 and owner % n == a:
                told_by, source = 0, views.manual[b, r]
            elif owner >= n and rules.heard != NO_LINES:
                told_by, source = 1 + owner - n, views.heard[b, r]
            views.told_by[b, a, r] = told_by
            copy_row(source, line)


@inner_njit
def reward_librarian(b, n, out):
    """Give the agent without a body, the last, the mean reward of the n others; it plays on until the game ends."""
    out.rewards[b, n] = out.rewards[b, :n].mean()
    out.returns[b, n] = out.rewards[b, n] + (out.returns[b, n] if out.length[b] > 1 else np.float32(0))
    out.truncated[b, n] = out.truncated[b, :n].any()
    out.terminated[b, n] = out.done[b] and not out.truncated[b, n]
    out.alive[b, n] = True
