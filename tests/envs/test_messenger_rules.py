"""MESSENGER rule by rule: games set up by hand, one step, what follows."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger.arrays import (
    CELL,
    CHASING,
    DONE,
    FLEEING,
    HOLDS,
    IMMOVABLE,
    KIND,
    MOVEMENT,
    PRESENT,
    ROLE,
    X,
    Y,
)

STAY, UP, DOWN, LEFT, RIGHT = range(5)


class Board:
    """Games of one kind (all alike) in which a test puts everybody where it wants them."""

    def __init__(self, env="messenger", rows=64, **options):
        self.vec = mg.make_vec(env, rows, copy=True, **options)
        self.vec.reset(seed=0)
        self.n, self.entities = self.vec.num_agents, self.vec.world._games.entities
        n = self.n
        self.enemy, self.message, self.goal, self.decoy = n, n + 1, 2 * n + 1, 3 * n + 1
        self.entities[:, n:, MOVEMENT] = IMMOVABLE
        for slot in range(n, self.entities.shape[1]):
            self.put(slot, 0, slot - n)
        for a in range(n):
            self.put(a, 5, 5)
            self.entities[:, a, HOLDS] = 0

    def put(self, slot, row, column):
        self.entities[:, slot, Y], self.entities[:, slot, X] = CELL * row, CELL * column

    def step(self, *actions):
        """Everybody's action, the same in all games; the end of games as the next observation has it."""
        rows = np.tile(np.array(actions, np.int64), (self.vec.num_envs, 1))
        *_, self.info = result = self.vec.step(rows)
        return result

    def outcome(self, *actions):
        """Reward of agent 0, whether the game ended and was won; the same in all games."""
        _, rewards, *_, info = self.step(*actions)
        found = {(float(r[0]), bool(d), bool(w)) for r, d, w in zip(rewards, info["done"], info["won"], strict=True)}
        assert len(found) == 1
        return found.pop()


def test_the_message_goes_to_the_goal():
    board = Board(stage="s2")
    board.put(board.message, 4, 5)
    board.put(board.goal, 3, 5)
    assert board.outcome(UP) == (0.5, False, False)
    assert board.entities[:, 0, HOLDS].all()
    assert not board.entities[:, board.message, PRESENT].any()
    assert board.outcome(UP) == (1.0, True, True)


def test_a_goal_without_a_message_is_lost_and_hostile_contacts_add_up():
    board = Board(stage="s2")
    board.put(board.goal, 4, 5)
    assert board.outcome(UP) == (-1.0, True, False)
    board = Board(stage="s2")
    board.put(board.goal, 4, 5)
    board.put(board.enemy, 4, 5)
    assert board.outcome(UP) == (-2.0, True, False)


@pytest.mark.parametrize("hostile", ["enemy", "decoy"])
def test_enemies_and_decoys_are_lost_message_or_not(hostile):
    for holds in (0, 1):
        board = Board(stage="s3")
        board.entities[:, 0, HOLDS] = holds
        board.put(getattr(board, hostile), 4, 5)
        assert board.outcome(UP) == (-1.0, True, False)


def test_hostile_contacts_come_before_the_message():
    board = Board(stage="s2")
    board.put(board.message, 4, 5)
    board.put(board.goal, 4, 5)
    assert board.outcome(UP) == (-1.0, True, False)


def test_half_a_cell_away_is_shown_next_door_and_touches():
    board = Board(stage="s2")
    board.put(board.enemy, 4, 5)
    board.entities[:, board.enemy, Y] += 1  # half a cell lower: its square reaches into row 5
    assert board.outcome(STAY) == (-1.0, True, False)
    board.put(board.enemy, 4, 5)
    assert board.outcome(STAY) == (0.0, False, False)


@pytest.mark.parametrize(
    ("holds", "first", "reward"), [(0, "message", 1), (0, "goal", -1), (1, "goal", 1), (1, "message", -1)]
)
def test_in_s1_the_first_contact_ends_the_game(holds, first, reward):
    board = Board(stage="s1")
    board.entities[:, 0, HOLDS] = holds
    board.put(getattr(board, first), 4, 5)
    assert board.outcome(UP) == (reward, True, reward > 0)


def test_time_is_a_loss():
    board = Board(stage="s2", max_cycles=2)
    assert board.outcome(STAY) == (0.0, False, False)
    _, rewards, terminated, truncated, info = board.step(STAY)
    assert (rewards == -1).all()
    assert truncated.all()
    assert not terminated.any()
    assert not info["won"].any()


@pytest.mark.parametrize(("movement", "expected"), [(CHASING, {(8, 7), (7, 8)}), (FLEEING, {(6, 7), (7, 6)})])
def test_half_a_cell_a_step_nearer_or_away(movement, expected):
    """The agent at (10, 10), the enemy at (7, 7), in half cells: every direction that helps is taken, none other."""
    board = Board(stage="s2")
    board.entities[:, board.enemy, Y] = board.entities[:, board.enemy, X] = 7
    board.entities[:, board.enemy, MOVEMENT] = movement
    board.step(STAY)
    assert set(map(tuple, board.entities[:, board.enemy][:, [Y, X]].tolist())) == expected


def test_who_flees_into_the_border_may_stay():
    board = Board(stage="s2")
    board.put(board.message, 0, 9)
    board.entities[:, board.message, MOVEMENT] = FLEEING
    board.step(STAY)
    assert (board.entities[:, board.message][:, [Y, X]] == [0, 18]).all()


def test_entities_see_where_the_agent_was():
    """The agent leaves upwards; a chaser in its row two cells to the right still comes along the row."""
    board = Board(stage="s2")
    board.put(board.enemy, 5, 8)
    board.entities[:, board.enemy, MOVEMENT] = CHASING
    board.step(UP)
    assert (board.entities[:, board.enemy][:, [Y, X]] == [10, 15]).all()


def test_moves_off_the_board_are_masked_and_do_nothing():
    board = Board(stage="s2")
    board.put(0, 9, 0)
    observation, *_ = board.step(STAY)
    assert observation["action_mask"][:, 0].tolist() == [[1, 1, 0, 0, 1]] * 64
    *_, info = board.step(DOWN)
    assert info["illegal"].all()
    assert (board.entities[:, 0][:, [Y, X]] == [18, 0]).all()


def test_the_grid_shows_me_first_and_others_in_changing_order():
    board = Board(stage="s2", rows=512)
    board.put(board.enemy, 2, 3)
    board.put(board.goal, 2, 3)
    observation, *_ = board.step(STAY)
    assert (observation["grid"][:, 0, 5, 5] == [15, 0, 0, 0]).all()
    cells = observation["grid"][:, 0, 2, 3, :2]
    enemy, goal = (2 + board.entities[:, slot, KIND] for slot in (board.enemy, board.goal))
    assert (np.sort(cells, 1) == np.sort(np.stack([enemy, goal], 1), 1)).all()
    assert 0.4 < (cells[:, 0] == enemy).mean() < 0.6


class TestTeams:
    """Several agents: each needs a message and a goal of its own."""

    def test_each_message_serves_one(self):
        board = Board("ma_messenger", stage="s1", agents=2)
        board.put(board.message, 4, 5)
        board.put(board.message + 1, 6, 5)
        _, rewards, *_ = board.step(UP, UP)
        assert (board.entities[:, :2, DONE].sum(1) == 1).all()  # in each game one of the two, as turns fall
        assert 10 < board.entities[:, 0, DONE].sum() < 54
        assert not rewards.any()

    def test_all_parts_done_is_won_by_all(self):
        board = Board("ma_messenger", stage="s1", agents=2)
        board.put(board.message, 4, 5)
        board.put(board.message + 1, 6, 5)
        _, rewards, *_, info = board.step(UP, DOWN)
        assert (rewards == 1).all()
        assert info["won"].all()

    def test_who_is_done_stays_and_cannot_be_touched(self):
        board = Board("ma_messenger", stage="s1", agents=2)
        board.put(board.message, 4, 5)
        observation, *_ = board.step(UP, STAY)
        assert observation["action_mask"][:, 0].tolist() == [[1, 0, 0, 0, 0]] * 64
        assert (observation["grid"][:, 1, 4, 5, 0] == 18).all()  # still to be seen, with its message
        board.put(board.enemy, 4, 5)
        *_, info = board.step(UP, STAY)
        assert info["illegal"][:, 0].all()
        assert not info["done"].any()

    def test_one_failure_is_everybodys(self):
        board = Board("ma_messenger", stage="s4", agents=3)
        board.put(board.goal, 4, 5)
        _, rewards, terminated, _, info = board.step(UP, STAY, STAY)
        assert (rewards == -1).all()
        assert terminated.all()
        assert not info["won"].any()

    def test_taking_a_message_is_paid_to_the_taker_and_a_second_one_means_nothing(self):
        board = Board("ma_messenger", stage="s4", agents=2)
        board.put(board.message, 4, 5)
        board.put(board.message + 1, 3, 5)
        _, rewards, *_ = board.step(UP, STAY)
        assert (rewards == np.float32([0.2, 0])).all()
        _, rewards, *_, info = board.step(UP, STAY)
        assert not rewards.any()
        assert not info["done"].any()
        assert board.entities[:, board.message + 1, PRESENT].all()

    def test_entities_that_wander_stay_apart(self):
        vec = mg.make_vec("ma_messenger", 256, stage="s2", agents=4)
        vec.reset(seed=0)
        entities, moved = vec.world._games.entities, []
        for _ in range(30):
            before = entities[:, 4:, [Y, X]].copy()
            vec.step(np.zeros((256, 4), np.int64))
            still = ~vec.world.out.done
            steps = np.abs(entities[:, 4:, [Y, X]] - before)[still].sum(-1)
            assert set(np.unique(steps)) <= {0, CELL}
            moved.append((steps > 0).mean())
            cells = entities[:, 4:, Y].astype(int) * 100 + entities[:, 4:, X]
            cells = np.where(entities[:, 4:, PRESENT] == 1, cells, -1 - np.arange(9))
            assert all(len(set(row)) == 9 for row in cells.tolist())
        assert 0.25 < np.mean(moved) < 4 / 11

    @pytest.mark.parametrize("agents", [1, 2, 3, 9])
    def test_everybody_begins_where_the_rules_say(self, agents):
        vec = mg.make_vec("ma_messenger", 256, stage="s3", agents=agents)
        vec.reset(seed=0)
        entities = vec.world._games.entities
        assert (entities[:, :agents, [Y, X]] == 10).all()
        places = entities[:, agents:, [Y, X]] // CELL
        assert np.isin(np.abs(places - 5).sum(-1), (2, 3)).all()
        assert all(len(set(map(tuple, row))) == 2 * agents + 1 for row in places.tolist())


def test_roles_of_decoys_and_their_movements():
    vec = mg.make_vec("messenger", 2048, stage="s3")
    vec.reset(seed=0)
    e = vec.world._games.entities
    assert (e[:, 4:, ROLE] == 0).all()
    assert (e[:, 4, KIND] == e[:, 2, KIND]).all()
    assert (e[:, 5, KIND] == e[:, 3, KIND]).all()
    assert (e[:, 4, MOVEMENT] != e[:, 2, MOVEMENT]).all()
    assert (e[:, 5, MOVEMENT] != e[:, 3, MOVEMENT]).all()
    assert (e[:, 4, MOVEMENT] != e[:, 5, MOVEMENT]).all()
    ways, counts = np.unique(e[:, 1:6, MOVEMENT], axis=0, return_counts=True)
    assert len(ways) == 18
    assert counts.min() > 60
    assert (np.sort(e[:, 1:4, MOVEMENT], 1) == [0, 1, 2]).all()


@pytest.mark.parametrize(("split", "ways"), [("train", 6), ("val", 6), ("test", 27), ("test_seen_dynamics", 6)])
def test_movements_of_s2(split, ways):
    vec = mg.make_vec("messenger", 2048, stage="s2", split=split)
    vec.reset(seed=0)
    assert len(np.unique(vec.world._games.entities[:, 1:, MOVEMENT], axis=0)) == ways
    assert len(np.unique(vec.world._games.entities[:, :, :2].reshape(2048, -1), axis=0)) == 24
