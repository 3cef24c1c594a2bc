"""Kernels of worlds whose manual is split: whose own each row is, and what agents tell one another.

They play what `kernels` and `dynamics` play, with what is told before it is shown, and are compiled where a world needs
them. `scalars[OWNER + r]` is the agent whose own row r of the manual is, that number plus n once it has told the row,
and −1 of an empty row; `scalars[STATEMENT + r]` is the statement in it.
"""

from collections import namedtuple

import numpy as np

from magrounding.envs.compiled import copy_document, copy_row, show_teammates, shuffled_place
from magrounding.envs.rtfm import arrays, kernels
from magrounding.envs.rtfm.arrays import (
    DIED,
    ELEMENT_DIVISION,
    ENGAGED,
    FIRST_TELL,
    HALF,
    KILLS,
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
        for a in range(rules.players):
            out.alive[b, a] = True


@cached_njit(nogil=True)
def step_rows(first, last, actions, auto_reset, slots, rules, tables, games, views, finals, out):
    """Play a step of rows, see `CompiledWorld`: who tells stays, and all do while they talk."""
    n, moves = rules.agents, np.where(actions < FIRST_TELL, actions, STAY)
    for b in range(first, last):
        scalars, entities = games.scalars[b], games.entities[b]
        if scalars[STEP] >= scalars[TALK]:
            play_games(b, b + 1, moves, rules, games, out)
        else:
            scalars[STEP] += 1
            for a in range(n):  # what they did last was in the game before
                entities[a, KILLS] = entities[a, DIED] = entities[a, ENGAGED] = 0
            judge(b, n, rules.max_cycles, rules.individual_death, scalars, entities, out)
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
            copy_document(views.told_by, b, finals.told_by, slots[b])
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
        seat, team = 0, np.int64(k >= ELEMENTS)
        if rules.reading == KIND:
            first, count = (half + team) % 2, rules.statements - ELEMENTS if team else ELEMENTS
            rank = shuffled_place(hash64(key, 3 + team), k - ELEMENTS * team, count)
            seat = first + 2 * (rank % ((n + 1 - first) // 2))
        elif rules.reading == HALF:
            seat = shuffled_place(hash64(key, 3), k, rules.statements) % n
        owner = n - 1 if rules.players > rules.agents else shuffled_place(hash64(key, 2), seat, n)
        scalars[OWNER + row] = -1 if scalars[OMITTED] >> k & 1 else owner
        scalars[STATEMENT + row] = k


@inner_njit
def _deal_row(b, row, rules, scalars, views):
    """Write a row of the manual of game b for each agent, and who told it to whom, as `scalars` say."""
    n, owner = rules.players, scalars[OWNER + row]
    for a in range(n):
        own = owner == a or owner == a + n
        told = owner >= n and not own and rules.heard != NO_LINES
        views.told_by[b, a, row] = 0 if own else 1 + owner - n if told else -1
        at = a * rules.statements + row
        for i in range(views.lines.shape[2]):  # by index, as in `copy_document`
            views.lines[b, at, i] = views.manual[b, row, i] if own else views.heard[b, row, i] if told else 0


@inner_njit
def _show_tells(b, slot, rules, background, scalars, entities, views):
    """Show what else there is to see of game b: which rows each agent may tell, and a librarian's map."""
    n, players, mask = rules.agents, rules.players, views.action_mask
    if players > n:
        copy_row(background, views.grid[slot, n])
        put_others(views.grid[slot, n], -1, n, rules.size, 2 * rules.occupants, entities)
        mask[slot, n, STAY] = 1
        views.position[slot, n] = -1
        show_teammates(slot, views)
    if scalars[STEP] < scalars[TALK]:
        mask[slot, :, STAY + 1 : FIRST_TELL] = 0
    tells = mask.shape[2] - FIRST_TELL
    for a in range(players):
        left = np.int64(tells) if rules.tells < 0 else rules.tells
        for row in range(tells):
            left -= scalars[OWNER + row] == a + players
        more = left > 0 and (a == n or entities[a, PRESENT] == 1)
        for row in range(tells):
            mask[slot, a, FIRST_TELL + row] = more and scalars[OWNER + row] == a


@inner_njit
def _reward_librarian(b, n, out):
    """Give the agent without a body, the last, the mean reward of the n others; it plays on until the game ends."""
    out.rewards[b, n] = out.rewards[b, :n].mean()
    out.returns[b, n] = out.rewards[b, n] + (out.returns[b, n] if out.length[b] > 1 else np.float32(0))
    out.truncated[b, n] = out.truncated[b, :n].any()
    out.terminated[b, n] = out.done[b] and not out.truncated[b, n]
