"""Better moves than those of `evasion`, by roll-outs: deviations are tried out in a model of the environment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from magrounding.envs.compiled import STEP
from magrounding.envs.rtfm.arrays import DIED, DRAWS, ENGAGED, KILLS, MOVE, PRESENT, STAY, TARGETS_LEFT
from magrounding.envs.rtfm.dynamics import move_all
from magrounding.envs.rtfm.evasion import EQUAL, Scratch, judge, make_scratch, weigh
from magrounding.envs.rtfm.pursuit import DISCOUNT, Pursuit
from magrounding.jit import inner_njit
from magrounding.seeding import ORDER, below, hash64

_MODEL = 1 << 33
"""Models draw from keys that are hashed with this counter, where neither world nor oracle ever comes."""


class Search(NamedTuple):
    """Budget and thresholds of a roll-out oracle.

    Attributes:
        first_games: played on from a state for each move that is tried, to find the one that may be better.
            At most `games`.
        games: played on with that one and with the rules' own, to see whether it is.
        depth: steps of such a game at most; what is undecided then counts as the rules estimate it.
        nearly: share of the best move's value, by the rules, that a move needs to be tried.
        safe: value from which on an agent's chances are safe; where those of all are, nothing is tried.
        margin, doubt: a move is taken instead of the rules' own where its mean is greater by the margin and so many
            standard errors of the difference.
    """

    first_games: int = 6
    games: int = 20
    depth: int = 8
    nearly: float = 0.9
    safe: float = 0.95
    margin: float = 0.01
    doubt: float = 1.0


class Model(NamedTuple):
    """A game that is played on: what never changes while it is, and room for its state.

    Attributes:
        rules, tables: configuration, and the `Pursuit` solved for it.
        scratch: scratch of the rules.
        actors, scalars: state of the game, [E, NUM_COLUMNS] and [NUM_SCALARS].
        values: [n, 5] of all moves in it.
    """

    rules: NamedTuple
    tables: Pursuit
    scratch: Scratch
    actors: np.ndarray
    scalars: np.ndarray
    values: np.ndarray


@inner_njit
def label_by_rollouts(games, rules, tables, search, entities, keys, scalars, labels, costs_to_go):
    """Label every agent's best moves, where roll-outs beat the rules by them.

    Arguments are as for `evasion.label_moving` and in `compiled.Games`, of which nothing is changed. Where roll-outs
    found a better move, the cost-to-go of the rules' best is what it gained for certain (`_gain`).
    """
    n = rules.agents
    scratch, values = make_scratch(n, rules.monsters, entities.shape[1]), np.zeros((n, 5), np.float32)
    state, counts = np.zeros_like(entities[0]), np.zeros_like(scalars[0])
    model = Model(rules, tables, scratch, state, counts, np.zeros((n, 5), np.float32))
    joint, here = np.zeros(n, np.int64), np.zeros(search.games)
    there = np.zeros(search.games)
    for b in games:
        weigh(rules, tables, entities[b], scratch, values)
        key = hash64(hash64(keys[b, ORDER], _MODEL), scalars[b, STEP])
        doubtful = False
        for a in range(n):
            doubtful |= judge(values[a], labels[b, a], costs_to_go[b, a]) < search.safe
            joint[a] = _pick(values[a], key, a)
        if not doubtful:
            continue
        before = -1.0  # what the joint move is worth in the first games; not known yet
        for a in range(n):
            own, rival, most = joint[a], -1, 0.0
            for move in range(5):
                nearly = values[a, move] > 0 and values[a, move] >= search.nearly * values[a].max()
                if labels[b, a, move] or not nearly:
                    continue
                if before < 0:
                    _play_on(joint, 0, search.first_games, entities[b], scalars[b], key, search, model, here)
                    before = here[: search.first_games].mean()
                joint[a] = move
                _play_on(joint, 0, search.first_games, entities[b], scalars[b], key, search, model, there)
                joint[a] = own
                worth = there[: search.first_games].mean()
                if worth > max(before, most):
                    rival, most = move, worth
            if rival < 0:
                continue
            _play_on(joint, search.first_games, search.games, entities[b], scalars[b], key, search, model, here)
            joint[a] = rival
            _play_on(joint, search.first_games, search.games, entities[b], scalars[b], key, search, model, there)
            gain = _gain(here, there, search)
            if gain <= 0:
                joint[a] = own
                continue
            before, share = most, gain / there.mean()
            for move in range(5):  # what the rules hold to be worth less than their best is worth so much less again
                labels[b, a, move] = move == rival
                costs_to_go[b, a, move] = np.float32(1 - (1 - costs_to_go[b, a, move]) * (1 - share))
            costs_to_go[b, a, rival] = 0


@inner_njit
def _gain(here, there, search):
    """By how much the mean of `there` beats that of `here`, games by the same draws: less the margin and the doubt."""
    more = there - here
    return more.mean() - search.margin - search.doubt * more.std() / np.sqrt(len(more))


@inner_njit
def _play_on(joint, first, count, actors, scalars, key, search, model, worth):
    """Play games on from a state, in the model: first the joint move, then as the rules have it.

    Args:
        joint: [n] moves.
        first, count: number of the first of the games, and how many; the number decides a game's draws.
        actors, scalars: the state, [E, NUM_COLUMNS] and [NUM_SCALARS].
        key: uint64 of the state's draws.
        search: depth.
        model: where they are played.
        worth: [count or more], filled: 0 of a game that is lost, of one that is won the discount of its steps, of
            another what the rules expect.
    """
    rules, state = model.rules, model.actors
    n = rules.agents
    for r in range(count):
        draws = hash64(key, first + r)
        for e in range(len(actors)):  # loops: the error message of an assignment of slices takes seconds to compile
            for column in range(actors.shape[1]):
                state[e, column] = actors[e, column]
        for k in range(len(scalars)):
            model.scalars[k] = scalars[k]
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
            living, died, engaged = 0, False, False
            for a in range(n):
                living += state[a, PRESENT]
                died |= state[a, DIED] == 1
                engaged |= state[a, ENGAGED] == 1
            if engaged or living == 0 or (died and not rules.individual_death):
                worth[r] = 0
                break
            if model.scalars[TARGETS_LEFT] == 0:
                break


@inner_njit
def _pick(values, key, counter):
    """One of the best of an agent's moves [5], drawn evenly."""
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
