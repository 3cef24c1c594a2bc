"""Kernels of worlds whose manual is split: whose own each row is, and what agents tell one another.

They play what `kernels` and `dynamics` play, with what is told before it is shown, and are compiled where a world needs
them. `scalars[OWNER + r]` is the agent whose own row r of the manual is, that number plus n once it has told the row,
and −1 of an empty row; `scalars[STATEMENT + r]` is the statement in it.
"""

from collections import namedtuple

import numpy as np

from magrounding.envs.compiled import copy_document, copy_row, shuffled_place
from magrounding.envs.rtfm import arrays, kernels
from magrounding.envs.rtfm.arrays import (
    DIED,
    ELEMENT_DIVISION,
    FIRST_TELL,
    HALF,
    KIND,
    NO_LINES,
    NUM_COLUMNS,  # noqa: F401  one of the three that a world asks for, see `CompiledWorld`
    OMITTED,
    OTHER_LINES,
    PRESENT,
    STAY,
    STEP,
    TEAM_DIVISION,
)
from magrounding.envs.rtfm.dynamics import judge, play_games
from magrounding.envs.rtfm.generate import write_text
from magrounding.envs.rtfm.kernels import put_others, write_states  # noqa: F401
from magrounding.envs.rtfm.splits import draw_assignment
from magrounding.jit import cached_njit, inner_njit
from magrounding.seeding import TASK, TEXT, below, hash64

ELEMENTS = 4
"""Statements of a manual about elements, the first ones; the others are about teams."""
_OF_OWNERS, _OF_ANOTHER = 1 << 14, 1 << 16
"""Counters from which keys are made: of these draws, and of the assignment of another game; no others use them."""
_PARTS = 1 << 20

TALK, OWNER = arrays.NUM_SCALARS, arrays.NUM_SCALARS + 1
"""Columns behind those of other games. TALK: the first steps, in which nothing moves and agents may only tell; from
OWNER and STATEMENT on there is one for each statement."""
STATEMENT = OWNER + 7
NUM_SCALARS = STATEMENT + 7

Views = namedtuple("Views", (*arrays.Views._fields, "heard", "lines", "told_by"))
"""Observations as in `arrays.Views`; `manual` [B, S, L] is the whole, `heard` [B, S, L] what is heard of a row that is
told; `lines` [B, n * S, L] are the rows of each agent's manual, `told_by` [B, n, S]."""


@cached_njit(nogil=True)
def start_rows(first, last, slots, rules, tables, games, views, out):
    """Start the games of rows that are done, see `CompiledWorld`: split their manuals."""
    kernels.start_rows(first, last, slots, rules, tables, games, views, out)
    ways = tables.elements.shape[0]
    for b in range(first, last):
        if not out.done[b]:
            continue
        keys, scalars = games.keys[b], games.scalars[b]
        _draw_owners(keys, rules, scalars)
        if rules.heard == OTHER_LINES:
            teams, elements = scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION]
            other = draw_assignment(hash64(keys[TASK], _OF_ANOTHER), 0, rules.side, tables.teams.shape[0] * ways)
            scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION] = other // ways, other % ways
            write_text(b, rules, tables, games, views.heard, views.goal)
            scalars[TEAM_DIVISION], scalars[ELEMENT_DIVISION] = teams, elements
        for row in range(rules.statements):
            _deal_row(b, row, rules, scalars, views)
        _show_tells(b, b, rules, tables.background, scalars, games.entities[b], views)
        out.alive[b, rules.agents :] = True  # a librarian


@cached_njit(nogil=True)
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of rows, see `CompiledWorld`: who tells stays, and all do while they talk."""
    n, moves = rules.agents, np.zeros_like(actions)
    for b in range(first, last):
        scalars, entities = games.scalars[b], games.entities[b]
        if scalars[STEP] < scalars[TALK]:
            scalars[STEP] += 1
            judge(b, n, rules.max_cycles, rules.individual_death, scalars, entities, out)
        else:
            for a in range(n):
                moves[b, a] = actions[b, a] if actions[b, a] < FIRST_TELL else STAY
            play_games(b, b + 1, moves, rules, games, out)
        for a in range(rules.players):
            action = actions[b, a]
            legal = views.action_mask[b, a, action] == 1  # as it was before the step
            out.illegal[b, a] = not legal and (a == n or entities[a, PRESENT] == 1 or entities[a, DIED] == 1)
            if legal and action >= FIRST_TELL:
                scalars[OWNER + action - FIRST_TELL] += rules.players
                _deal_row(b, action - FIRST_TELL, rules, scalars, views)
        if rules.players > n:
            _reward_librarian(b, n, out)
    kernels.show_step(first, last, auto_reset, slots, rules, tables, games, views, finals, out)
    for b in range(first, last):
        if rules.resample_text:
            for row in range(rules.statements):
                _deal_row(b, row, rules, games.scalars[b], views)
        if auto_reset and out.done[b]:
            copy_document(views.lines, b, finals.lines, slots[b])
            copy_row(views.told_by[b].ravel(), finals.told_by[slots[b]].ravel())
            _show_tells(b, slots[b], rules, tables.background, games.scalars[b], games.entities[b], finals)
        else:
            _show_tells(b, b, rules, tables.background, games.scalars[b], games.entities[b], views)


@inner_njit
def _draw_owners(keys, rules, scalars):
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
def _deal_row(b, row, rules, scalars, views):
    """Write a row of the manual of game b for each agent, and who told it to whom, as `scalars` say."""
    n, rows, owner = rules.players, rules.statements, scalars[OWNER + row]
    for a in range(n):
        told_by, source = -1, views.manual[b, row, :0]
        if owner >= 0 and owner % n == a:
            told_by, source = 0, views.manual[b, row]
        elif owner >= n and rules.heard != NO_LINES:
            told_by, source = 1 + owner - n, views.heard[b, row]
        views.told_by[b, a, row] = told_by
        copy_row(source, views.lines[b, a * rows + row])


@inner_njit
def _show_tells(b, slot, rules, background, scalars, entities, views):
    """Show what else there is to see of game b: which rows each agent may tell, and a librarian's map."""
    n, players, tells = rules.agents, rules.players, views.action_mask.shape[2] - FIRST_TELL
    if players > n:
        copy_row(background, views.grid[slot, n])
        put_others(views.grid[slot, n], -1, n, rules.size, 2 * rules.occupants, entities)
        views.position[slot, n] = -1
        views.action_mask[slot, n, STAY] = 1
        for a in range(n):
            views.teammates[slot, a, n - 1, :2] = -1
            views.teammates[slot, n, a, :2] = views.position[slot, a]
            views.teammates[slot, n, a, 2:] = views.inventory[slot, a]
    talks = scalars[STEP] < scalars[TALK]
    for a in range(players):
        mask, told = views.action_mask[slot, a], 0
        if talks:
            mask[STAY + 1 : FIRST_TELL] = 0
        if rules.tells >= 0:
            for row in range(tells):
                told += scalars[OWNER + row] == a + players
        more = (a == n or entities[a, PRESENT] == 1) and (rules.tells < 0 or told < rules.tells)
        for row in range(tells):
            mask[FIRST_TELL + row] = more and scalars[OWNER + row] == a


@inner_njit
def _reward_librarian(b, n, out):
    """Give the agent without a body, the last, the mean reward of the n others; it plays on until the game ends."""
    out.rewards[b, n] = out.rewards[b, :n].mean()
    out.returns[b, n] = out.rewards[b, n] + (out.returns[b, n] if out.length[b] > 1 else np.float32(0))
    out.truncated[b, n] = out.truncated[b, :n].any()
    out.terminated[b, n] = out.done[b] and not out.truncated[b, n]
    out.alive[b, n] = True
