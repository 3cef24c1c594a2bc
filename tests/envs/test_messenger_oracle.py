"""The oracle wins nearly all of MESSENGER, never labels nonsense, and divides the work by the state alone."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.messenger import pursuit
from magrounding.envs.messenger.arrays import CHASING, DONE, FLEEING, HOLDS, IMMOVABLE, MOVEMENT, WANDERING, X, Y
from magrounding.envs.messenger.oracle import Oracle
from magrounding.envs.messenger.pursuit import DISCOUNT, Pursuit, add_reaction_odds
from magrounding.envs.oracle import symmetries
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.teams.evaluate import play
from tests.envs.test_messenger_rules import DOWN, LEFT, RIGHT, STAY, UP, Board
from tests.envs.test_rtfm_oracle import check_labels

STEPS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))


@pytest.mark.parametrize(
    ("env", "options", "bar"),
    [
        ("messenger", {"stage": "s1"}, 1.0),
        ("messenger", {"stage": "s2", "split": "test"}, 0.997),
        ("messenger", {"stage": "s3", "split": "test"}, 0.985),
        ("ma_messenger", {"stage": "s2", "agents": 3}, 0.97),
        ("ma_messenger", {"stage": "s3", "agents": 3}, 0.985),
        ("ma_messenger", {"stage": "s4", "agents": 2, "split": "test"}, 0.99),
        ("ma_messenger", {"stage": "s4", "agents": 3, "split": "test"}, 0.945),
    ],
)
def test_it_wins(env, options, bar):
    vec = mg.make_vec(env, 1500, **options)
    assert play(Oracle(vec), vec, 1500, seed=1000).won.mean() >= bar


@pytest.mark.parametrize("agents", [1, 3])
def test_it_wins_every_still_game_that_can_be_won(agents):
    """All begin in the middle: a game can be won if all they need is within the limit, around what is hostile."""
    vec = mg.make_vec("ma_messenger", 800, stage="s1", agents=agents)
    vec.reset(seed=0)
    entities = vec.world._games.entities.copy()
    could = np.array([can_be_won(board, agents, vec.spec.max_cycles) for board in entities])
    assert 0.7 < could.mean() < 1  # or nothing was tested
    np.testing.assert_array_equal(play(Oracle(vec), vec, 800, seed=0).won, could)


def can_be_won(board, n, limit):
    cells = [(int(e[Y]) // 2, int(e[X]) // 2) for e in board]
    messages, goals = set(cells[n + 1 : 2 * n + 1]), set(cells[2 * n + 1 :])
    wanted, walls = (goals, messages) if board[0, HOLDS] else (messages, goals)
    distance, waiting = {cells[0]: 0}, [cells[0]]
    for row, column in waiting:
        for down, right in STEPS:
            to = row + down, column + right
            if to not in distance and to not in walls and to != cells[n] and 0 <= min(to) <= max(to) < 10:
                distance[to] = distance[row, column] + 1
                waiting.append(to)
    return all(distance.get(cell, limit + 1) <= limit for cell in wanted)


def best(board):
    """The best moves of every agent, alike in all games."""
    labels = Oracle(board.vec).best_actions()
    assert (labels == labels[0]).all()
    return [set(np.flatnonzero(row).tolist()) for row in labels[0]]


def single(stage="s2", **places):
    """A board with one agent in the middle; everybody else out of the way, standing, but for those given."""
    board = Board(stage=stage, rows=4)
    for name, place in {"enemy": (0, 0), "message": (0, 9), "goal": (9, 0), **places}.items():
        board.put(getattr(board, name), *place)
    if stage == "s3":
        board.put(board.decoy + 1, 9, 9)
    return board


def test_all_first_moves_of_shortest_safe_paths_are_best():
    assert best(single(message=(3, 7))) == [{UP, RIGHT}]
    assert best(single(message=(3, 7), enemy=(5, 6))) == [{UP}]
    assert best(single(message=(3, 5), enemy=(4, 5))) == [{LEFT, RIGHT}]
    assert best(single("s3", message=(3, 7), decoy=(4, 5))) == [{RIGHT}]


def test_the_goal_is_out_of_bounds_until_the_message_is_held():
    board = single(goal=(5, 6), message=(3, 7))
    assert best(board) == [{UP}]
    board.entities[:, 0, HOLDS] = 1
    assert best(board) == [{RIGHT}]


def test_half_a_cell_counts():
    """Half a cell lower, the enemy above reaches into the agent's row: it is safe only where it does not stand."""
    board = single(message=(2, 5), enemy=(4, 4))
    assert best(board) == [{UP}]
    board.entities[:, board.enemy, X] += 1
    assert best(board) == [{RIGHT}]


def test_a_chaser_is_met_if_it_is_the_message_and_run_from_if_it_is_the_enemy():
    board = single(message=(5, 8))
    board.entities[:, board.message, MOVEMENT] = CHASING
    assert best(board) == [{RIGHT}]
    board = single(enemy=(5, 6), message=(0, 5))
    board.entities[:, board.enemy, MOVEMENT] = CHASING
    assert best(board) == [{UP}]


def test_who_flees_is_cornered():
    board = single(message=(9, 9), goal=(0, 0), enemy=(0, 9))
    board.put(0, 9, 6)
    board.entities[:, board.message, MOVEMENT] = FLEEING
    assert RIGHT in best(board)[0]
    assert not {LEFT, STAY} & best(board)[0]


def team(agents, messages, goals, enemy=(0, 9)):
    """A board of several agents (row, column, holds); nothing moves."""
    board = Board("ma_messenger", rows=4, stage="s4", agents=len(agents))
    board.put(board.enemy, *enemy)
    for a, (row, column, holds) in enumerate(agents):
        board.put(a, row, column)
        board.entities[:, a, HOLDS] = holds
    for k, (message, goal) in enumerate(zip(messages, goals, strict=True)):
        board.put(board.message + k, *message)
        board.put(board.goal + k, *goal)
    return board


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
def test_work_is_divided_by_place_and_not_by_index(order):
    agents = np.array([(1, 1, 0), (8, 2, 0), (4, 6, 1)])
    board = team(agents[list(order)], [(1, 4), (5, 2), (9, 9)], [(4, 8), (0, 0), (8, 5)])
    assert best(board) == [[{RIGHT}, {UP}, {RIGHT}][who] for who in order]


def test_two_agents_in_one_cell_go_for_different_messages_and_who_is_done_stays():
    board = team([(5, 5, 0), (5, 5, 0), (2, 2, 1)], [(5, 8), (8, 5), (0, 0)], [(9, 9), (0, 5), (9, 0)])
    board.entities[:, 2, DONE] = 1
    first, second, done = best(board)
    assert {frozenset(first), frozenset(second)} == {frozenset({RIGHT}), frozenset({DOWN})}
    assert done == {STAY}


@pytest.mark.parametrize("stage", ["s3", "s4"])
def test_permuting_agents_permutes_their_best_moves(stage):
    vec = mg.make_vec("ma_messenger", 500, stage=stage, agents=3)
    vec.reset(seed=5)
    oracle = Oracle(vec)
    entities = vec.world._games.entities
    rng = np.random.default_rng(1)
    for _ in range(6):
        vec.step(rng.integers(0, 5, (500, 3)))  # apart first: who stands in one cell goes by index
        before, labels = entities.copy(), oracle.best_actions()
        entities[:, :3] = before[:, [2, 0, 1]]
        same = (oracle.best_actions() == labels[:, [2, 0, 1]]).all(axis=(1, 2))
        entities[:] = before
        together = (before[:, [0, 1, 2]][:, :, [Y, X]] == before[:, [1, 2, 0]][:, :, [Y, X]]).all(2).any(1)
        # The rest are ties between divisions: whole steps to meet who chases, and one movement for all, make many.
        assert same[~together].mean() > {"s3": 0.97, "s4": 0.84}[stage]


@pytest.mark.parametrize(
    ("env", "options"),
    [("messenger", {"stage": "s3"}), *(("ma_messenger", {"stage": f"s{k}", "agents": 3}) for k in (1, 2, 3, 4))],
)
def test_labels_are_never_empty_and_never_masked(env, options):
    vec = mg.make_vec(env, 300, **options)
    check_labels(vec, Oracle(vec))


def test_the_same_seed_draws_the_same_and_a_single_env_is_played_like_a_row():
    options = {"stage": "s4", "agents": 2}
    vec, env = mg.make_vec("ma_messenger", 4, **options), mg.make("ma_messenger", **options)
    vec.reset(seed=20)
    env.reset(seed=23)
    team, again, alone = Oracle(vec), Oracle(vec), Oracle(env)
    assert alone.initial_memory(1) is None
    while env.agents:
        actions = team.act()[0]
        np.testing.assert_array_equal(again.act(rows=np.array([1, 3]))[0][[1, 3]], actions[[1, 3]])
        chosen, _ = alone.act()
        assert list(chosen.values()) == actions[3].tolist()
        vec.step(actions)
        env.step(chosen)


def test_rows_that_nobody_asks_about_keep_what_was_found():
    vec = mg.make_vec("messenger", 64, stage="s2")
    vec.reset(seed=1)
    oracle = Oracle(vec)
    before = oracle.best_actions()
    for _ in range(5):
        vec.step(np.zeros((64, 1), np.int64))
    after = oracle.best_actions(rows=np.arange(32))
    np.testing.assert_array_equal(after[32:], before[32:])
    assert (after[:32] != before[:32]).any()


def test_it_refuses_what_it_cannot_play():
    with pytest.raises(ConfigurationError):
        Oracle(mg.make_vec("rtfm", 2))
    with pytest.raises(CallOrderError):
        Oracle(mg.make_vec("messenger", 2)).best_actions()


@pytest.mark.parametrize(
    ("stage", "movement", "place"),
    [
        ("s2", CHASING, (7, 13)),
        ("s2", FLEEING, (18, 10)),
        ("s2", FLEEING, (18, 18)),
        ("s3", WANDERING, (8, 18)),
    ],
)
def test_odds_are_those_of_the_world(stage, movement, place):
    rows = 10_000
    board = Board("messenger" if stage == "s2" else "ma_messenger", rows, stage=stage)
    slot = board.enemy
    board.entities[:, slot, [Y, X]] = place
    board.entities[:, slot, MOVEMENT] = movement
    board.vec.world.step(np.zeros((rows, board.n), np.int64), False)
    moved = board.entities[:, slot][:, [Y, X]] - np.array(place)
    odds = np.zeros(5, np.float32)
    add_reaction_odds(*place, 10, 10, movement, 18, np.float32(1), odds)
    assert odds.sum() == pytest.approx(1)
    for move, step in enumerate(np.array(STEPS) * pursuit.stride(movement)):
        assert (moved == step).all(axis=1).mean() == pytest.approx(odds[move], abs=4.5 * np.sqrt(0.25 / rows))


def small_tables(side):
    """Of chasing, fleeing and immovable entities."""
    _, symmetry, orbit, representatives = symmetries(side)
    turned = symmetries(2 * side - 1)[0]
    places = (2 * side - 1) ** 2
    value = np.zeros((3, 3, len(representatives), places, places + 1), np.float32)
    pursuit.solve(side, CHASING, representatives, symmetry, orbit, turned, value)
    return Pursuit(value, turned, symmetry, orbit, CHASING)


def test_tables_solve_the_rules():
    """Bellman's equation of drawn states, written down anew."""
    side, width = 4, 7
    tables, rng = small_tables(side), np.random.default_rng(8)

    def worth(target, hostile, cell, t, h):
        turn = tables.turned[tables.symmetry[cell]]
        return tables.value[target, hostile, tables.orbit[cell], turn[t], turn[h]]

    def touch(cell, place):
        return (
            place < width**2 and np.abs(np.subtract(np.multiply(divmod(cell, side), 2), divmod(place, width))).max() < 2
        )

    def replies(movement, cell, place):
        """All ends, as often as they are likely."""
        if movement == IMMOVABLE or place == width**2:
            return [place]
        agent, here = np.multiply(divmod(cell, side), 2), np.array(divmod(place, width))
        ends = [here + step for step in STEPS[1:]]
        nearer = [bool(np.abs(agent - end).sum() < np.abs(agent - here).sum()) for end in ends]
        ends = [end for end, is_nearer in zip(ends, nearer, strict=True) if is_nearer == (movement == CHASING)]
        return [int(np.dot(end if 0 <= min(end) <= max(end) < width else here, (width, 1))) for end in ends]

    for _ in range(400):
        target, hostile, cell = rng.integers(3), rng.integers(3), int(rng.integers(side**2))
        t, h = (int(place) for place in rng.integers(width**2, size=2))
        if target == IMMOVABLE:
            t = int(2 * (rng.integers(side) * width + rng.integers(side)))
        if rng.random() < 0.2:
            h = width**2
        value = worth(target, hostile, cell, t, h)
        if touch(cell, h) or touch(cell, t):
            assert value == (not touch(cell, h))
            continue
        row, column = divmod(cell, side)
        following = [
            (row + down) * side + column + right
            for down, right in STEPS
            if 0 <= min(row + down, column + right) <= max(row + down, column + right) < side
        ]
        ends = [(i, j) for i in replies(target, cell, t) for j in replies(hostile, cell, h)]
        expected = max(np.mean([worth(target, hostile, to, *end) for end in ends]) for to in following)
        assert value == pytest.approx(DISCOUNT * expected, abs=5e-4)
