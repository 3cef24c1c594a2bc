"""What the rules leave to chance falls as often as they say: turn order, and how monsters move.

Seeds are fixed, so each test either always passes or always fails; the level lets a right kernel fail with one
choice of seed in 10,000.
"""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, MOVE, PRESENT, ROW, TURN

STAY, UP, DOWN, LEFT, RIGHT = range(5)
LEVEL = 1e-4
ROWS = 20_000


def place(world, slots):
    """Put everybody on the given cells, in every row; None for the dead."""
    entities = world._games.entities
    for slot, cell in enumerate(slots):
        entities[:, slot, PRESENT] = cell is not None
        if cell is not None:
            entities[:, slot, [ROW, COLUMN]] = cell


def moves_of(cells, slot, *, agents=1, chase_range=5, action=STAY):
    """How often [5] the monster in `slot` chose each move, with everybody on the given cells."""
    vec = mg.make_vec("ma_rtfm", ROWS, stage="s3", agents=agents, size=16, chase_range=chase_range)
    vec.reset(seed=11)
    place(vec.world, cells)
    vec.world.step(np.full((ROWS, agents), action), False)
    return np.bincount(vec.world._games.entities[:, slot, MOVE], minlength=5)


def expected(reducing, open_moves, chased=True):
    """Probabilities [5]: 0.6 uniform over the moves that come nearer, else uniform over those not into a wall."""
    chance = 0.6 if chased else 0.0
    p = np.zeros(5)
    p[list(open_moves)] += (1 - chance) / len(open_moves)
    p[list(reducing)] += chance / max(len(reducing), 1)
    return p


def agrees(observed, probabilities):
    assert not observed[probabilities == 0].any()
    possible = probabilities > 0
    return chisquare(observed[possible], probabilities[possible] * observed.sum()).pvalue > LEVEL


ALL = (STAY, UP, DOWN, LEFT, RIGHT)
ONE_AGENT = [
    # agent, monster, moves that come nearer, moves not into a wall, chased
    ((5, 5), (7, 7), (UP, LEFT), ALL, True),
    ((5, 5), (3, 4), (DOWN, RIGHT), ALL, True),
    ((5, 5), (5, 6), (LEFT,), ALL, True),
    ((5, 5), (9, 5), (UP,), ALL, True),
    ((5, 5), (1, 2), (DOWN, RIGHT), (STAY, DOWN, LEFT, RIGHT), True),  # at 3-4-5: exactly in range
    ((5, 5), (10, 5), (UP,), ALL, True),
    ((5, 5), (10, 6), (), ALL, False),  # just out of range
    ((5, 5), (1, 1), (), (STAY, DOWN, RIGHT), False),
    ((2, 2), (1, 1), (DOWN, RIGHT), (STAY, DOWN, RIGHT), True),
]


@pytest.mark.parametrize(("agent", "monster", "nearer", "open_moves", "chased"), ONE_AGENT)
def test_a_monster_chases_with_probability_six_tenths_within_range(agent, monster, nearer, open_moves, chased):
    far = (14, 14)
    counts = moves_of([agent, monster, far, (13, 1), (13, 2)], 1)
    assert agrees(counts, expected(nearer, open_moves, chased))


def test_a_monster_chooses_before_the_agent_moves():
    counts = moves_of([(5, 5), (5, 7), (14, 14), (13, 1), (13, 2)], 1, action=UP)
    assert agrees(counts, expected((LEFT,), ALL))


def test_the_distractor_moves_by_the_same_rule():
    counts = moves_of([(5, 5), (14, 14), (7, 7), (13, 1), (13, 2)], 2)
    assert agrees(counts, expected((UP, LEFT), ALL))


@pytest.mark.parametrize(("chase_range", "chased"), [(2, False), (2.9, True), (0, False)])
def test_chase_range_is_an_option(chase_range, chased):
    counts = moves_of([(5, 5), (7, 7), (14, 14), (13, 1), (13, 2)], 1, chase_range=chase_range)
    assert agrees(counts, expected((UP, LEFT) if chased else (), ALL, chased))


def test_an_unlimited_chase_has_no_range():
    counts = moves_of([(1, 1), (14, 14), (5, 5), (13, 1), (13, 2)], 1, chase_range=None)
    assert agrees(counts, expected((UP, LEFT), (STAY, UP, LEFT)))


def test_a_monster_chases_the_nearest_living_agent():
    others = [(14, 14), (14, 13), (1, 13), (1, 12), (1, 11)]
    assert agrees(moves_of([(5, 5), (8, 5), (7, 5), *others], 2, agents=2), expected((DOWN,), ALL))
    assert agrees(moves_of([(5, 5), None, (7, 5), *others], 2, agents=2), expected((UP,), ALL))
    assert agrees(moves_of([(5, 5), (7, 12), (7, 5), *others], 2, agents=2), expected((UP,), ALL))
    # Nearest by Euclidean distance: (5, 7) at √8 beats (10, 5) at 3.
    assert agrees(moves_of([(10, 5), (5, 7), (7, 5), *others], 2, agents=2), expected((UP, RIGHT), ALL))


def test_ties_for_the_nearest_fall_at_random():
    others = [(14, 14), (14, 13), (14, 12), (1, 13), (1, 12), (1, 11), (1, 10)]
    counts = moves_of([(5, 5), (9, 5), (7, 3), (7, 5), *others], 3, agents=3)
    assert agrees(counts, expected((UP, DOWN, LEFT), ALL))
    # Two above each other's mirror image pull up, one pulls right: two thirds and one third.
    counts = moves_of([(5, 5), (5, 5), (7, 7), (7, 5), *others], 3, agents=3)
    assert agrees(counts, 0.4 * np.full(5, 0.2) + 0.6 * np.array([0, 2 / 3, 0, 0, 1 / 3]))


def test_monsters_choose_independently():
    vec = mg.make_vec("ma_rtfm", ROWS, stage="s3", agents=1, size=16)
    vec.reset(seed=11)
    place(vec.world, [(5, 5), (7, 7), (3, 3), (13, 1), (13, 2)])
    vec.world.step(np.zeros((ROWS, 1), np.int64), False)
    pairs = vec.world._games.entities[:, 1, MOVE] * 5 + vec.world._games.entities[:, 2, MOVE]
    joint = np.outer(expected((UP, LEFT), ALL), expected((DOWN, RIGHT), ALL)).ravel()
    assert agrees(np.bincount(pairs, minlength=25), joint)


def test_moves_of_one_step_say_nothing_about_the_next():
    vec = mg.make_vec("ma_rtfm", ROWS, stage="s3", agents=1, size=16, chase_range=0)
    vec.reset(seed=11)
    drawn = []
    for _ in range(2):
        place(vec.world, [(5, 5), (7, 7), (3, 3), (13, 1), (13, 2)])
        vec.world.step(np.zeros((ROWS, 1), np.int64), False)
        drawn.append(vec.world._games.entities[:, 1, MOVE].astype(int))
    assert agrees(np.bincount(drawn[0] * 5 + drawn[1], minlength=25), np.full(25, 1 / 25))


@pytest.mark.parametrize(("agents", "moving"), [(2, False), (3, True), (4, True)])
def test_turn_orders_are_uniform(agents, moving):
    vec = mg.make_vec("ma_rtfm", ROWS, stage="s3" if moving else "s2", agents=agents, size=16)
    vec.reset(seed=5)
    vec.world.step(np.zeros((ROWS, agents), np.int64), False)
    turns = vec.world._games.entities[:, :, TURN]
    kinds = [(0, agents, 0)] + ([(agents, 2 * agents + 1, agents)] if moving else [])
    for first, last, base in kinds:
        orders = Counter(map(tuple, turns[:, first:last].tolist()))
        members = list(range(base, base + last - first))
        assert all(sorted(order) == members for order in orders)
        ways = int(np.prod(np.arange(1, last - first + 1)))
        assert len(orders) == ways or ways > ROWS / 20
        if ways <= 24:
            assert chisquare(list(orders.values())).pvalue > LEVEL
        for k in range(last - first):  # each mover equally often on each turn
            assert chisquare(np.bincount(turns[:, first + k] - base, minlength=last - first)).pvalue > LEVEL
