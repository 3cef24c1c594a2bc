"""Better moves than those of `evasion`, by roll-outs in a model of the environment.

`evasion` is the base policy: it gives each agent the move that is tried against others, and plays all later steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.envs.compiled import STEP, copy_row
from magrounding.envs.rtfm.arrays import DIED, DRAWS, ENGAGED, KILLS, MOVE, STAY, TARGETS_LEFT
from magrounding.envs.rtfm.dynamics import is_lost, move_all
from magrounding.envs.rtfm.evasion import EQUAL, Scratch, judge, make_scratch, weigh
from magrounding.envs.rtfm.pursuit import DISCOUNT, Pursuit
from magrounding.jit import cached_njit, inner_njit
from magrounding.schema import Count, NonNegative, Share
from magrounding.seeding import ORDER, below, hash64

_MODEL = 1 << 33
"""Counter from which roll-outs draw random numbers; those of the world and of the oracle never reach it."""


class Search(NamedTuple):
    """Budget and thresholds of a roll-out oracle.

    Attributes:
        first_games: roll-outs of each candidate move, to select the best one; at most `games`.
        games: roll-outs of the selected move and of the base policy's, to compare the two.
        depth: most steps of a roll-out; a game that is undecided then has the value that the base policy estimates.
        nearly: share of the best value, as the base policy estimates it, that makes a move a candidate.
        safe: value from which on an agent is safe; where all agents are, there are no roll-outs.
        margin, doubt: the selected move replaces the base policy's where its mean value is greater by the margin plus
            `doubt` standard errors of the difference.
    """

    first_games: Count = 6
    games: Count = 20
    depth: Count = 8
    nearly: Share = 0.9
    safe: Share = 0.95
    margin: Share = 0.01
    doubt: NonNegative = 1.0


class Model(NamedTuple):
    """Model of the game for roll-outs: its constants, and arrays for its state.

    Attributes:
        rules, tables: configuration of the game, and the `Pursuit` solved for it.
        scratch: scratch of the base policy.
        actors, scalars: state of the game, [E, NUM_COLUMNS] and [NUM_SCALARS].
        values: [n, 5], value of each agent's moves in that state.
    """

    rules: NamedTuple
    tables: Pursuit
    scratch: Scratch
    actors: np.ndarray
    scalars: np.ndarray
    values: np.ndarray


@cached_njit(nogil=True)
def label_by_rollouts(games, rules, tables, search, entities, keys, scalars, labels, costs_to_go):
    """Label every agent's best moves: those of the base policy, or one that is better in roll-outs.

    Arguments are as for `evasion.label_moving` and in `compiled.Games`, of which nothing is changed. Where roll-outs
    found a better move, the cost-to-go of the base policy's best is the gain (`_gain`), as a share of the new value.
    """
    n = rules.agents
    scratch, values = make_scratch(n, rules.monsters, entities.shape[1]), np.zeros((n, 5), np.float32)
    state, counts = np.zeros_like(entities[0]), np.zeros_like(scalars[0])
    model = Model(rules, tables, scratch, state, counts, np.zeros((n, 5), np.float32))
    joint, own_worth = np.zeros(n, np.int64), np.zeros(search.games)
    rival_worth = np.zeros(search.games)
    for b in games:
        weigh(rules, tables, entities[b], scratch, values)
        key = hash64(hash64(keys[b, ORDER], _MODEL), scalars[b, STEP])
        doubtful = False
        for a in range(n):
            doubtful |= judge(values[a], labels[b, a], costs_to_go[b, a]) < search.safe
            joint[a] = _pick(values[a], key, a)
        if not doubtful:
            continue
        before = -1.0  # mean value of the joint move in the first roll-outs; not known yet
        for a in range(n):
            own, rival, most = joint[a], -1, 0.0
            for move in range(5):
                nearly = values[a, move] > 0 and values[a, move] >= search.nearly * values[a].max()
                if labels[b, a, move] or not nearly:
                    continue
                if before < 0:
                    _roll_out(joint, 0, search.first_games, entities[b], scalars[b], key, search, model, own_worth)
                    before = own_worth[: search.first_games].mean()
                joint[a] = move
                _roll_out(joint, 0, search.first_games, entities[b], scalars[b], key, search, model, rival_worth)
                joint[a] = own
                worth = rival_worth[: search.first_games].mean()
                if worth > max(before, most):
                    rival, most = move, worth
            if rival < 0:
                continue
            _roll_out(joint, search.first_games, search.games, entities[b], scalars[b], key, search, model, own_worth)
            joint[a] = rival
            _roll_out(joint, search.first_games, search.games, entities[b], scalars[b], key, search, model, rival_worth)
            gain = _gain(own_worth, rival_worth, search)
            if gain <= 0:
                joint[a] = own
                continue
            before, share = most, gain / rival_worth.mean()
            # Costs of the base policy are relative to its best move; from now on to the rival, which is better.
            for move in range(5):
                labels[b, a, move] = move == rival
                costs_to_go[b, a, move] = np.float32(1 - (1 - costs_to_go[b, a, move]) * (1 - share))
            costs_to_go[b, a, rival] = 0


@inner_njit
def _gain(own_worth, rival_worth, search):
    """Gain in mean value over roll-outs with the same draws, less the margin and `doubt` standard errors."""
    more = rival_worth - own_worth
    return more.mean() - search.margin - search.doubt * more.std() / np.sqrt(len(more))


@inner_njit
def _roll_out(joint, first, count, actors, scalars, key, search, model, worth):
    """Play roll-outs from a state in the model: first the joint move, then the moves of the base policy.

    Args:
        joint: [n] moves.
        first, count: number of the first roll-out, and how many; the number of a roll-out decides its draws.
        actors, scalars: the state, [E, NUM_COLUMNS] and [NUM_SCALARS].
        key: uint64 of the state's draws.
        search, model: the budget, of which `depth` is read; the model, whose state is written over.
        worth: [count or more], filled with the value of each roll-out: 0 if lost; else the discount of its steps, times
            the base policy's estimate if undecided.
    """
    rules, state = model.rules, model.actors
    n = rules.agents
    for r in range(count):
        draws = hash64(key, first + r)
        for e in range(len(actors)):
            copy_row(actors[e], state[e])
        copy_row(scalars, model.scalars)
        model.scalars[DRAWS] = 0
        worth[r] = 1
        for step in range(search.depth + 1):
            if step:
                weigh(rules, model.tables, state, model.scratch, model.values)
            if step == search.depth:
                for a in range(n):
                    worth[r] *= max(model.values[a].max(), np.float32(0))
                break
            for a in range(n):
                state[a, MOVE] = _pick(model.values[a], draws, step * n + a) if step else joint[a]
                state[a, KILLS], state[a, DIED], state[a, ENGAGED] = 0, 0, 0
            move_all(rules, draws, model.scalars, state)
            worth[r] *= DISCOUNT
            if is_lost(n, rules.individual_death, state):
                worth[r] = 0
                break
            if model.scalars[TARGETS_LEFT] == 0:
                break


@inner_njit
def _pick(values, key, counter):
    """One of the best of an agent's moves, by their values [5], drawn uniformly."""
    least, ties = max(values.max(), np.float32(0)) * EQUAL, 0
    for move in range(5):
        ties += values[move] >= least
    pick = below(key, _MODEL + counter, ties)
    for move in range(5):
        if values[move] >= least:
            if pick == 0:
                return move
            pick -= 1
    return STAY
