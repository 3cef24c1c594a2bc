"""The oracle wins what can be won, never labels nonsense, and divides the work by the state alone."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET
from magrounding.envs.rtfm.dynamics import CHASE_TENTHS
from magrounding.envs.rtfm.oracle import Oracle, _solve_pursuit
from magrounding.envs.rtfm.pursuit import DISCOUNT, SAFE_SHARE, add_move_odds
from magrounding.errors import CallOrderError, ConfigurationError
from magrounding.teams.evaluate import play

STAY, UP, DOWN, LEFT, RIGHT = range(5)
STEPS = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
COLD, FIRE, LIGHTNING, POISON = range(4)


@pytest.mark.parametrize(
    ("env", "options", "games", "bar"),
    [
        ("rtfm", {"task": "simple_stationary", "size": 6}, 4000, 0.99),
        ("rtfm", {"task": "simple", "size": 6}, 4000, 0.925),
        ("rock_paper_scissors", {"task": "permutation"}, 2000, 0.93),
        ("ma_rtfm", {"stage": "s1", "agents": 2}, 2000, 1.0),
        ("ma_rtfm", {"stage": "s2", "agents": 3}, 2000, 0.998),
        ("ma_rtfm", {"stage": "s3", "agents": 2}, 4000, 0.94),
        ("ma_rtfm", {"stage": "s5", "agents": 2, "split": "eval", "size": 10}, 1000, 0.97),
        ("ma_rtfm", {"stage": "s3", "agents": 3}, 3000, 0.84),
        ("ma_rtfm", {"stage": "s3", "agents": 2, "death": "individual", "drop_mode": "left"}, 1000, 0.93),
        ("ma_rtfm", {"stage": "s3", "agents": 2, "size": 14, "chase_range": None}, 500, 0.93),
        ("ma_rtfm", {"stage": "s2", "agents": 5, "size": 10}, 500, 0.995),
    ],
)
def test_it_wins(env, options, games, bar):
    vec = mg.make_vec(env, games, max_cycles=80, **options)
    assert play(Oracle(vec), vec, games, seed=1000).won.mean() >= bar


@pytest.mark.parametrize(("agents", "size", "games"), [(1, 6, 2000), (1, 5, 500), (2, 6, 60)])
def test_it_loses_no_stationary_game_that_can_be_won(agents, size, games):
    vec = mg.make_vec("ma_rtfm", games, stage="s2", agents=agents, size=size, max_cycles=80)
    vec.reset(seed=0)
    entities = vec.world._games.entities.copy()
    played = play(Oracle(vec), vec, games, seed=0)
    lost = np.flatnonzero(~played.won)
    assert played.timed_out[lost].all()  # it waits where nothing can be done, and never dies
    assert not [row for row in lost if can_be_won(entities[row], agents, size - 2)]
    assert agents == 2 or len(lost)  # or nothing was tested


def can_be_won(entities, n, side):
    """Search everything that agents can do, one at a time (where nothing moves, the order of moves can be any)."""
    cells = [(int(e[ROW]) - 1, int(e[COLUMN]) - 1) for e in entities]
    element, target = entities[:, ELEMENT].tolist(), entities[:, TARGET].tolist()
    first_item = n + n + 1
    monsters, items = frozenset(range(n, first_item)), frozenset(range(first_item, len(entities)))
    start = (tuple(cells[:n]), (-1,) * n, monsters, items)
    seen, waiting = {start}, [start]
    while waiting:
        places, held, alive, lying = waiting.pop()
        if not any(target[m] for m in alive):
            return True
        for a in range(n):
            for rows, columns in STEPS[1:]:
                cell = places[a][0] + rows, places[a][1] + columns
                if not (0 <= cell[0] < side and 0 <= cell[1] < side):
                    continue
                taken = next((i for i in lying if cells[i] == cell), None)
                hand = held[a] if taken is None else taken
                met = next((m for m in alive if cells[m] == cell), None)
                if met is not None and not (target[met] and hand >= 0 and element[hand] == element[met]):
                    continue
                following = (
                    (*places[:a], cell, *places[a + 1 :]),
                    (*held[:a], hand, *held[a + 1 :]),
                    alive - {met},
                    lying - {taken},
                )
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
    return False


def situation(agents, targets, items, distractor=None, *, stage="s2", size=8, **options):
    """A vector env of one game: agents (row, column, number of the item held or −1), others (row, column, element).

    Items that somebody holds have no place: (element,).
    """
    n = len(agents)
    vec = mg.make_vec("ma_rtfm", 1, stage=stage, agents=n, size=size, **options)
    vec.reset(seed=0)
    entities = vec.world._games.entities[0]
    entities[:, PRESENT] = 0
    first_item = n + vec.world._rules.monsters
    for slot, (row, column, held) in enumerate(agents):
        entities[slot, [ROW, COLUMN, PRESENT, HELD]] = row, column, 1, held if held < 0 else first_item + held
    monsters = [(*target, 1) for target in targets] + ([] if distractor is None else [(*distractor, 0)])
    for slot, (row, column, element, target) in enumerate(monsters, n):
        entities[slot, [ROW, COLUMN, PRESENT, ELEMENT, TARGET]] = row, column, 1, element, target
    for slot, (*cell, element) in enumerate(items, first_item):
        entities[slot, ELEMENT] = element
        if cell:
            entities[slot, [ROW, COLUMN, PRESENT]] = *cell, 1
    return vec


def best(vec):
    """The best moves of every agent of the only game."""
    return [set(np.flatnonzero(row).tolist()) for row in Oracle(vec).best_actions()[0]]


def test_all_first_moves_of_shortest_paths_are_best():
    assert best(situation([(1, 1, -1)], [(6, 6, FIRE)], [(3, 3, FIRE), (3, 1, COLD)], (1, 6, COLD))) == [{DOWN, RIGHT}]
    assert best(situation([(1, 1, 0)], [(6, 6, FIRE)], [(FIRE,), (2, 1, COLD)], (1, 6, COLD))) == [{RIGHT}]
    assert best(situation([(6, 5, 0)], [(6, 6, FIRE)], [(FIRE,), (2, 1, COLD)], (5, 5, COLD))) == [{RIGHT}]


def test_the_distractor_and_a_target_that_it_cannot_beat_are_walked_around():
    around = situation([(3, 3, -1)], [(2, 3, FIRE)], [(1, 3, FIRE), (6, 6, COLD)], (3, 2, COLD))
    assert best(around) == [{RIGHT}]


def test_an_item_of_no_use_that_bars_the_way_on_is_taken_first():
    # The target is in a corner: on one side the distractor, on the other an item that an armed agent would take.
    vec = situation([(3, 3, -1)], [(1, 6, FIRE)], [(5, 3, FIRE), (1, 5, COLD)], (2, 6, COLD))
    assert best(vec) == [{UP, RIGHT}]
    oracle = Oracle(vec)
    done = False
    for _ in range(40):
        *_, info = vec.step(oracle.act()[0])
        done = info["done"][0]
        if done:
            break
    assert done
    assert info["won"][0]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("stage", ["s2", "s3"])
def test_targets_are_divided_by_place_and_not_by_index(stage, order):
    agents = np.array([(1, 1, -1), (8, 2, -1), (4, 8, -1)])
    targets = np.array([(3, 6, FIRE), (6, 4, COLD), (8, 8, LIGHTNING)])
    items = [(1, 2, FIRE), (8, 1, COLD), (4, 7, LIGHTNING), (1, 8, POISON)]
    vec = situation(agents[list(order)], targets, items, (5, 1, POISON), stage=stage, size=10)
    assert best(vec) == [[{RIGHT}, {LEFT}, {LEFT}][who] for who in order]


@pytest.mark.parametrize("stage", ["s2", "s3"])
def test_permuting_agents_permutes_their_best_moves(stage):
    vec = mg.make_vec("ma_rtfm", 1000, stage=stage, agents=3, size=10)
    vec.reset(seed=5)
    oracle = Oracle(vec)
    entities = vec.world._games.entities
    for _ in range(6):
        before, labels = entities.copy(), oracle.best_actions()
        entities[:, :3] = before[:, [2, 0, 1]]
        same = (oracle.best_actions() == labels[:, [2, 0, 1]]).all(axis=(1, 2))
        entities[:] = before
        # The rest are ties: between divisions of equal length, which a grid has many of, and between equal chances.
        assert same.mean() > {"s2": 0.93, "s3": 0.98}[stage]
        vec.step(oracle.act()[0])


def test_who_holds_an_item_uses_it_and_who_has_no_task_stays():
    # The agent that holds fire is further from the target of fire than the one next to it, who could take nothing else.
    vec = situation([(6, 1, 0), (3, 3, -1)], [(3, 4, FIRE), (6, 6, COLD)], [(FIRE,), (1, 1, COLD)])
    vec.world._games.entities[0, 3, PRESENT] = 0  # the target of cold is dead
    vec.world._games.entities[0, 5, PRESENT] = 0
    assert best(vec) == [{UP, RIGHT}, {STAY}]


def test_an_agent_awaits_a_target_that_it_beats_and_flees_from_one_that_it_does_not():
    armed = situation([(1, 1, 0)], [(1, 2, FIRE)], [(FIRE,), (6, 6, COLD)], (6, 5, COLD), stage="s3")
    assert best(armed) == [{RIGHT}]
    bare = situation([(3, 3, -1)], [(3, 2, FIRE)], [(3, 5, FIRE), (6, 6, COLD)], (6, 1, COLD), stage="s3")
    assert best(bare) == [{RIGHT}]
    cornered = situation([(1, 1, -1)], [(1, 2, FIRE)], [(6, 6, FIRE), (6, 5, COLD)], (6, 1, COLD), stage="s3")
    assert best(cornered) == [{DOWN}]


@pytest.mark.parametrize(("stage", "size", "death"), [("s2", 8, "team"), ("s3", 6, "individual"), ("s3", 13, "team")])
def test_labels_are_never_empty_and_never_masked(stage, size, death):
    vec = mg.make_vec("ma_rtfm", 300, stage=stage, agents=3, size=size, death=death)
    check_labels(vec, Oracle(vec))


def check_labels(vec, oracle):
    """The moves of an oracle are legal, and there is always one; half of the moves are random ones."""
    observation, info = vec.reset(seed=11)
    rng = np.random.default_rng(0)
    for _ in range(25):
        labels = oracle.best_actions()
        assert labels.any(axis=2).all()
        assert not labels[observation["action_mask"] == 0].any()
        chosen, _ = oracle.act(observation, None, info)
        assert np.take_along_axis(labels, chosen[..., None], 2).all()
        actions = np.where(rng.random(chosen.shape) < 0.5, chosen, rng.integers(0, 5, chosen.shape))
        observation, *_, info = vec.step(actions)


def test_a_single_env_is_played_like_a_row_of_a_vector_env():
    vec, env = mg.make_vec("ma_rtfm", 4, stage="s3", agents=2), mg.make("ma_rtfm", stage="s3", agents=2)
    vec.reset(seed=20)
    observations, _ = env.reset(seed=23)
    team, single = Oracle(vec), Oracle(env)
    assert single.initial_memory(1) is None
    while env.agents:
        some = team.act(rows=np.array([1, 3]))[0]
        actions = team.act()[0]
        np.testing.assert_array_equal(some[[1, 3]], actions[[1, 3]])
        chosen, _ = single.act(observations)
        assert list(chosen.values()) == actions[3].tolist()
        vec.step(actions)
        observations, *_ = env.step(chosen)


def test_it_refuses_what_it_cannot_play():
    with pytest.raises(ConfigurationError):
        Oracle(object())  # type: ignore[arg-type]
    with pytest.raises(CallOrderError):
        Oracle(mg.make_vec("rtfm", 2)).best_actions()


def test_odds_are_those_of_the_world():
    rows = 20_000
    vec = mg.make_vec("ma_rtfm", rows, stage="s3", agents=1)
    vec.reset(seed=0)
    entities = vec.world._games.entities
    for agent, monster in (((3, 4), (5, 2)), ((1, 1), (1, 4)), ((6, 6), (1, 1)), ((6, 2), (5, 6))):
        vec.reset()
        entities[:, 0, [ROW, COLUMN]] = agent
        entities[:, 1, [ROW, COLUMN]] = monster
        entities[:, 2, PRESENT] = 0
        vec.world.step(np.zeros((rows, 1), np.int64), False)
        moved = entities[:, 1, [ROW, COLUMN]] - np.array(monster)
        odds = np.zeros(5, np.float32)
        add_move_odds(monster[0] - 1, monster[1] - 1, agent[0] - 1, agent[1] - 1, 6, 25.0, 1.0, odds)
        assert odds.sum() == pytest.approx(1)
        for move, step in enumerate(STEPS):
            share = (moved == step).all(axis=1).mean()
            assert share == pytest.approx(odds[move], abs=4.5 * np.sqrt(0.25 / rows))


def test_tables_solve_the_rules():
    """Bellman's equation of drawn states, written down anew."""
    side, cells = 4, 16
    tables = _solve_pursuit(side, 25.0, False)
    rng = np.random.default_rng(8)

    def step(cell, move):
        row, column = cell // side + STEPS[move][0], cell % side + STEPS[move][1]
        return row * side + column if 0 <= row < side and 0 <= column < side else -1

    def replies(agent, monster, to):
        """[(cell, chance)] of a monster, if the agent goes from `agent` to `to`."""
        if monster in (to, cells):
            return [(monster, 1.0)]
        legal = [step(monster, move) for move in range(5) if step(monster, move) >= 0]
        rows, columns = agent // side - monster // side, agent % side - monster % side
        chances = dict.fromkeys(legal, (1 - CHASE_TENTHS / 10) / len(legal))  # 4 × 4: all within range
        nearer = [sign * by for sign, by in ((np.sign(rows), side), (np.sign(columns), 1)) if sign]
        for by in nearer:
            chances[monster + by] += CHASE_TENTHS / 10 / len(nearer)
        return list(chances.items())

    def expected(table, agent, first, second):
        values = [
            sum(
                p * q * table[to, one, two]
                for one, p in replies(agent, first, to)
                for two, q in replies(agent, second, to)
            )
            for to in (step(agent, move) for move in range(5))
            if to >= 0
        ]
        return max(values)

    item = 5
    turn, seeking = tables.turned[tables.symmetry[item]], tables.seeking[tables.orbit[item]]
    seeking = seeking[np.ix_(turn[:-1], turn[:-1], turn)]
    for _ in range(300):
        agent, first, second = rng.choice(cells, 3, replace=False)
        if rng.random() < 0.2:
            second = cells
        tolerance = {"abs": 2e-4}
        state = agent, first, second
        assert tables.armed[state] == pytest.approx(DISCOUNT * expected(tables.armed, *state), **tolerance)
        assert tables.evading[state] == pytest.approx(
            SAFE_SHARE + (1 - SAFE_SHARE) * expected(tables.evading, *state), **tolerance
        )
        if agent != item:
            assert seeking[state] == pytest.approx(DISCOUNT * expected(seeking, *state), **tolerance)
    np.testing.assert_array_equal(seeking[item], tables.armed[item])
    assert tables.armed.max() == 1
    assert min(tables.armed.min(), tables.seeking.min(), tables.evading.min()) == 0
