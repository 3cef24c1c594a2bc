"""Who pursues what, in games set up by hand, in both worlds."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger import arrays as messenger
from magrounding.envs.rtfm import arrays as rtfm
from magrounding.teams.diagnosis import NOTHING, Diagnosis, conflicts, pursued

STAY, UP, DOWN, LEFT, RIGHT = range(5)
GONE = -1, -1


def goals_of(before, after, *places):
    return pursued(*(np.array([array], np.float32) for array in (before, after, places)))[0].tolist()


def test_the_nearest_of_what_a_move_comes_nearer_to():
    things = (1, 4), (1, 9), (5, 3), (1, 2)
    assert goals_of([(1, 2)], [(1, 3)], *things) == [0]
    assert goals_of([(1, 2)], [(2, 2)], *things) == [2]  # (1, 2) is nearest, but it went away from it
    assert goals_of([(1, 5)], [(1, 6)], *things) == [1]
    assert goals_of([(1, 2)], [(1, 2)], *things) == [NOTHING]
    assert goals_of([(1, 2)], [(0, 2)], *things) == [NOTHING]


@pytest.mark.parametrize(
    ("goals", "pairs"),
    [
        ([0, 1, 0], [False, True, False]),
        ([3, 3, 3], [True, True, True]),
        ([2, 2, NOTHING], [True]),
        ([NOTHING, 5, 6], [False]),
        ([NOTHING, NOTHING, 4], []),
        ([4], []),
    ],
)
def test_conflicts_are_of_pairs(goals, pairs):
    assert conflicts(np.array([goals])).tolist() == pairs
    assert sorted(conflicts(np.array([goals, goals]))) == sorted(2 * pairs)


def diagnose(vec, *script):
    """Play actions of both agents, the same in all games, and say what was found."""
    diagnosis, rows = Diagnosis(vec, team=object()), np.arange(vec.num_envs)
    obs, *_, info = vec.step(np.zeros((vec.num_envs, 2), np.int64))  # everybody is shown where the test put them
    for actions in script:
        chosen = np.tile(np.array(actions, np.int64), (vec.num_envs, 1))
        diagnosis.chosen(rows, obs, info["alive"], chosen, None)
        obs, *_, info = vec.step(chosen)
        diagnosis.played(rows, obs, info)
    return diagnosis.metrics(), info


@pytest.fixture
def board():
    """RTFM: agents at both ends of a column, an item in its middle; everything else at the edges."""
    vec = mg.make_vec("ma_rtfm", 3, stage="s1", agents=2, size=8)
    vec.reset(seed=0)
    entities = vec.world._games.entities
    for slot, place in enumerate([(1, 3), (6, 3), (1, 6), (6, 6), (3, 3), (6, 1)]):  # agents, monsters, items
        entities[:, slot, rtfm.ROW], entities[:, slot, rtfm.COLUMN] = place
    return vec


def test_rtfm_two_agents_and_one_item(board):
    assert diagnose(board, (DOWN, UP))[0] == {"subgoal_conflicts": 1.0}
    facts, _ = diagnose(board, (DOWN, DOWN))  # one takes the item, the other turns to the next
    assert facts == {"subgoal_conflicts": 0.0}
    assert (board.world._games.entities[:, 0, rtfm.HELD] == 4).all()


@pytest.fixture
def messages():
    """MESSENGER: both agents carry a message, in one row; one goal lies between them, one above the second."""
    vec = mg.make_vec("ma_messenger", 3, stage="s4", agents=2)
    vec.reset(seed=0)
    entities = vec.world._games.entities
    places = [(5, 3), (5, 9), (9, 0), (0, 0), (0, 0), (5, 6), (3, 9)]  # agents, enemy, messages, goals
    for slot, (row, column) in enumerate(places):
        entities[:, slot, messenger.Y], entities[:, slot, messenger.X] = messenger.CELL * row, messenger.CELL * column
    entities[:, 2:, messenger.MOVEMENT] = messenger.IMMOVABLE
    entities[:, :2, messenger.HOLDS] = 1
    entities[:, 3:5, messenger.PRESENT] = 0
    return vec


def test_the_last_step_counts_with_the_last_places(messages):
    """Both arrive and the game is won: the next game's places have no say."""
    facts, info = diagnose(messages, (STAY, UP), (RIGHT, STAY), (RIGHT, STAY), (RIGHT, UP))
    assert info["won"].all()
    assert facts == {"subgoal_conflicts": 0.0}
