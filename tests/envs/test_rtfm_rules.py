"""One hand-made situation for each sentence of the rules.

A situation is put into every row of a batch; where a rule depends on chance (turn order, moves of monsters), the rows
are picked in which chance fell as the situation needs it.
"""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.compiled import RUNNING
from magrounding.envs.rtfm.arrays import (
    COLUMN,
    ELEMENT,
    HELD,
    MOVE,
    OUTCOME,
    PRESENT,
    ROW,
    STEP,
    TARGET,
    TARGETS_LEFT,
    TURN,
    WORD_1,
)

STAY, UP, DOWN, LEFT, RIGHT = range(5)
COLD, FIRE, LIGHTNING, POISON = range(4)
NOTHING = -1
STEP_REWARD = np.float32(-0.02)


class Situation:
    """The same position in every row.

    Args:
        agents: (row, column, held item or NOTHING), items counted from 0.
        targets: (row, column, element); fewer than agents where some have died already.
        distractor: likewise, or None.
        items: (row, column, element it beats), or just the element of an item that somebody holds.
    """

    def __init__(self, agents, targets, distractor=None, items=(), *, stage="s2", size=8, rows=1, **options):
        self.n = n = len(agents)
        self.vec = mg.make_vec("ma_rtfm", rows, stage=stage, agents=n, size=size, **options)
        self.vec.reset(seed=3)
        self.world = self.vec.world
        self.entities = self.world._games.entities
        self.entities[:, :, PRESENT] = 0
        monsters = self.world._rules.monsters
        self.first_monster, self.first_item = n, n + monsters
        self.distractor = n + n
        for slot, (row, column, held) in enumerate(agents):
            self._put(slot, row, column)
            self.entities[:, slot, HELD] = held if held == NOTHING else self.first_item + held
        for slot, (row, column, element) in enumerate(targets, n):
            self._put(slot, row, column)
            self.entities[:, slot, [ELEMENT, TARGET]] = element, 1
        if distractor is not None:
            self._put(self.distractor, *distractor[:2])
            self.entities[:, self.distractor, [ELEMENT, TARGET]] = distractor[2], 0
        for slot, item in enumerate(items, self.first_item):
            if isinstance(item, tuple):
                self._put(slot, *item[:2])
                item = item[2]
            self.entities[:, slot, ELEMENT] = item
        self.world._games.scalars[:, TARGETS_LEFT] = len(targets)

    def _put(self, slot, row, column):
        self.entities[:, slot, [ROW, COLUMN, PRESENT]] = row, column, 1

    def play(self, *actions):
        """One step of the same actions in every row, without restarting."""
        self.world.step(np.tile(np.array(actions, np.int64), (self.vec.num_envs, 1)), False)
        return self.world.out

    def present(self, slot, row=0):
        return bool(self.entities[row, slot, PRESENT])

    def cell(self, slot, row=0):
        return tuple(self.entities[row, slot, [ROW, COLUMN]].tolist())

    def rows_where(self, moves=None, first=None):
        """Rows in which monsters drew these moves {slot: move} and `first` moves before all others of its kind."""
        chosen = np.ones(self.vec.num_envs, bool)
        for slot, move in (moves or {}).items():
            chosen &= self.entities[:, slot, MOVE] == move
        if first is not None:
            chosen &= self.entities[:, 0 if first < self.n else self.n, TURN] == first
        rows = np.flatnonzero(chosen)
        assert len(rows) >= 3, "chance never fell like this"
        return rows


@pytest.mark.parametrize(
    ("move", "cell"), [(STAY, (3, 3)), (UP, (2, 3)), (DOWN, (4, 3)), (LEFT, (3, 2)), (RIGHT, (3, 4))]
)
def test_an_agent_moves_one_cell(move, cell):
    s = Situation([(3, 3, NOTHING)], [(6, 6, FIRE)], (6, 5, COLD))
    out = s.play(move)
    assert s.cell(0) == cell
    assert not out.illegal.any()
    assert s.world.observation["position"][0, 0].tolist() == list(cell)
    assert out.rewards[0, 0] == STEP_REWARD
    assert not out.done[0]


@pytest.mark.parametrize(("cell", "move"), [((1, 3), UP), ((6, 3), DOWN), ((3, 1), LEFT), ((3, 6), RIGHT)])
def test_a_step_into_a_wall_does_nothing_and_is_reported(cell, move):
    s = Situation([(*cell, NOTHING)], [(5, 5, FIRE)], (5, 4, COLD))
    s.play(STAY)
    assert s.world.observation["action_mask"][0, 0].tolist() == [int(m != move) for m in range(5)]
    out = s.play(move)
    assert s.cell(0) == cell
    assert out.illegal[0, 0]
    assert out.rewards[0, 0] == STEP_REWARD


def test_entering_a_cell_takes_its_item():
    s = Situation([(3, 3, NOTHING)], [(6, 6, FIRE)], (6, 5, COLD), [(3, 4, FIRE)])
    s.play(RIGHT)
    assert not s.present(s.first_item)
    assert s.entities[0, 0, HELD] == s.first_item
    words = s.entities[0, s.first_item, WORD_1 : WORD_1 + 2].tolist()
    assert s.world.observation["inventory"][0, 0].tolist() == words


@pytest.mark.parametrize("move", [STAY, UP])
def test_neither_staying_nor_bumping_a_wall_takes_an_item(move):
    s = Situation([(1, 3, NOTHING)], [(6, 6, FIRE)], (6, 5, COLD), [(1, 3, FIRE)])
    s.play(move)
    assert s.present(s.first_item)
    assert s.entities[0, 0, HELD] == NOTHING


def test_a_monsters_arrival_does_not_make_the_agent_take_the_item_under_its_feet():
    s = Situation([(3, 3, NOTHING)], [(3, 4, FIRE)], None, [(3, 3, FIRE)], stage="s3", rows=200)
    s.play(STAY)
    for row in s.rows_where({s.first_monster: LEFT}):
        assert s.present(s.first_item, row)
        assert not s.present(0, row)
        assert s.world.out.rewards[row, 0] == -1


def test_the_item_held_before_is_destroyed():
    s = Situation([(3, 3, 0)], [(6, 6, FIRE)], (6, 5, COLD), [FIRE, (3, 4, COLD)])
    s.play(RIGHT)
    assert s.entities[0, 0, HELD] == s.first_item + 1
    assert not s.entities[0, s.first_item :, PRESENT].any()


def test_put_aside_left_leaves_the_old_item_where_the_new_one_lay():
    s = Situation([(3, 3, 0)], [(6, 6, FIRE)], (6, 5, COLD), [FIRE, (3, 4, COLD)], drop_mode="left")
    s.play(RIGHT)
    assert s.entities[0, 0, HELD] == s.first_item + 1
    assert s.present(s.first_item)
    assert s.cell(s.first_item) == (3, 4)
    s.play(STAY)
    assert s.entities[0, 0, HELD] == s.first_item + 1
    s.play(LEFT)
    s.play(RIGHT)
    assert s.entities[0, 0, HELD] == s.first_item
    assert s.cell(s.first_item + 1) == (3, 4)
    assert s.present(s.first_item + 1)


def test_put_aside_left_takes_one_item_only():
    """The item left behind is not picked up again in the same step."""
    s = Situation([(3, 3, 0)], [(6, 6, FIRE)], (6, 5, COLD), [FIRE, (3, 4, COLD)], drop_mode="left")
    s.play(RIGHT)
    assert (s.entities[0, s.first_item :, PRESENT] == [1, 0]).all()


@pytest.mark.parametrize(("element", "wins"), [(FIRE, True), (COLD, False)])
def test_the_item_is_taken_before_the_fight(element, wins):
    s = Situation([(3, 3, NOTHING)], [(3, 4, FIRE)], (6, 5, COLD), [(3, 4, element)])
    out = s.play(RIGHT)
    assert bool(out.won[0]) is wins
    assert out.done[0]
    assert out.rewards[0, 0] == (1 if wins else -1)


@pytest.mark.parametrize("held", [NOTHING, 0, 1])
def test_only_the_item_that_beats_its_element_kills_a_monster(held):
    s = Situation([(3, 3, held)], [(3, 4, FIRE)], (6, 5, COLD), [FIRE, COLD])
    out = s.play(RIGHT)
    assert bool(out.won[0]) is (held == 0)
    assert s.present(s.first_monster) is (held != 0)
    assert s.present(0) is (held == 0)
    assert out.rewards[0, 0] == (1 if held == 0 else -1)
    assert out.terminated[0, 0]
    assert not out.truncated[0, 0]
    assert out.done[0]


@pytest.mark.parametrize("held", [NOTHING, 0, 1])
def test_the_item_decides_too_when_the_monster_walks_in(held):
    s = Situation([(3, 3, held)], [(3, 4, FIRE)], (6, 5, COLD), [FIRE, COLD], stage="s3", rows=200)
    out = s.play(STAY)
    for row in s.rows_where({s.first_monster: LEFT}):
        assert bool(out.won[row]) is (held == 0)
        assert s.present(0, row) is (held == 0)


def test_items_are_not_used_up():
    s = Situation([(3, 3, 0), (1, 1, NOTHING)], [(3, 4, FIRE), (3, 5, FIRE)], (6, 5, COLD), [FIRE])
    out = s.play(RIGHT, STAY)
    assert not out.done[0]
    assert out.rewards[0].tolist() == [1, STEP_REWARD]
    out = s.play(RIGHT, STAY)
    assert out.won[0]
    assert s.entities[0, 0, HELD] == s.first_item
    assert out.rewards[0].tolist() == [1, STEP_REWARD]
    assert out.returns[0].tolist() == pytest.approx([2, -0.04])


def test_an_agent_that_enters_a_monsters_cell_meets_it_before_that_monsters_move():
    s = Situation([(3, 3, 0)], [(3, 4, FIRE)], (6, 5, COLD), [FIRE], stage="s3", rows=200)
    out = s.play(RIGHT)
    for move in range(5):
        rows = s.rows_where({s.first_monster: move})
        assert not s.entities[rows, s.first_monster, PRESENT].any()
    # The target is dead everywhere; a game is lost only where the distractor came along, and it is too far away.
    assert out.won.all()


@pytest.mark.parametrize("held", [0, NOTHING])
def test_actors_choose_on_the_old_state(held):
    """An agent that leaves is not followed into its new cell: the monster's move was chosen before."""
    s = Situation([(3, 3, held)], [(3, 4, FIRE)], (6, 6, COLD), [FIRE], stage="s3", rows=300)
    out = s.play(UP)
    for row in s.rows_where({s.first_monster: LEFT}):
        assert s.cell(s.first_monster, row) == (3, 3)
        assert s.cell(0, row) == (2, 3)
        assert not out.done[row]
    assert (s.entities[s.rows_where({s.first_monster: UP}), s.first_monster, COLUMN] == 4).all()


def test_walls_block_monsters():
    s = Situation([(6, 6, NOTHING)], [(1, 1, FIRE)], (1, 6, COLD), stage="s3", rows=400, chase_range=0)
    s.play(STAY)
    assert set(s.entities[:, s.first_monster, MOVE].tolist()) == {STAY, DOWN, RIGHT}
    assert set(s.entities[:, s.distractor, MOVE].tolist()) == {STAY, DOWN, LEFT}


def test_monsters_share_cells_and_neither_fight_nor_take_items():
    s = Situation([(6, 6, NOTHING)], [(2, 2, FIRE)], (2, 4, COLD), [(2, 3, FIRE), (2, 3, COLD)], stage="s3", rows=400)
    s.play(STAY)
    for row in s.rows_where({s.first_monster: RIGHT, s.distractor: LEFT}):
        assert s.cell(s.first_monster, row) == s.cell(s.distractor, row) == (2, 3)
        assert s.entities[row, :, PRESENT].all()
    for row in s.rows_where({s.first_monster: RIGHT, s.distractor: DOWN}):
        assert s.present(s.first_item, row)


def test_the_dead_monsters_move_is_dropped():
    s = Situation([(3, 3, 0), (3, 5, NOTHING)], [(3, 4, FIRE), (1, 1, FIRE)], None, [FIRE], stage="s3", rows=400)
    s.play(RIGHT, STAY)
    for row in s.rows_where({s.first_monster: RIGHT}):
        assert not s.present(s.first_monster, row)
        assert s.present(1, row)


def test_the_others_moves_still_run_so_a_distractor_turns_the_win_into_a_loss():
    s = Situation([(3, 3, 0)], [(3, 4, FIRE)], (3, 5, COLD), [FIRE], stage="s3", rows=400)
    out = s.play(RIGHT)
    assert not s.entities[:, s.first_monster, PRESENT].any()
    struck = s.rows_where({s.distractor: LEFT})
    assert not out.won[struck].any()
    assert out.done[struck].all()
    assert (out.rewards[struck, 0] == -1).all()
    assert not s.entities[struck, 0, PRESENT].any()
    for move in (STAY, UP, DOWN, RIGHT):
        spared = s.rows_where({s.distractor: move})
        assert out.won[spared].all()
        assert (out.rewards[spared, 0] == 1).all()


@pytest.mark.parametrize("held", [NOTHING, 0, 1])
def test_meeting_the_distractor_loses_even_where_the_bad_item_kills_it(held):
    s = Situation([(3, 3, held)], [(6, 6, FIRE)], (3, 4, COLD), [FIRE, COLD])
    out = s.play(RIGHT)
    assert out.done[0]
    assert not out.won[0]
    assert out.rewards[0, 0] == -1
    assert s.present(s.distractor) is (held != 1)
    assert s.present(0) is (held == 1)
    assert out.terminated[0, 0]


def test_killing_target_and_distractor_in_one_step_is_a_loss():
    """Both monsters stand in one cell and the agent's item beats both: it engaged the distractor."""
    s = Situation([(3, 3, 0)], [(3, 4, FIRE)], (3, 4, FIRE), [FIRE])
    out = s.play(RIGHT)
    assert not s.present(s.first_monster)
    assert not s.present(s.distractor)
    assert out.done[0]
    assert not out.won[0]
    assert out.rewards[0, 0] == -1


def test_agents_may_share_and_swap_cells():
    s = Situation([(3, 3, NOTHING), (3, 4, NOTHING)], [(6, 6, FIRE), (6, 5, FIRE)], (6, 4, COLD))
    out = s.play(RIGHT, LEFT)
    assert (s.cell(0), s.cell(1)) == ((3, 4), (3, 3))
    out = s.play(LEFT, STAY)
    assert s.cell(0) == s.cell(1) == (3, 3)
    assert not out.done[0]
    assert out.alive.all()


def test_an_item_goes_to_the_first_to_arrive():
    s = Situation(
        [(3, 3, NOTHING), (3, 5, NOTHING)], [(6, 6, FIRE), (6, 5, FIRE)], (6, 4, COLD), [(3, 4, FIRE)], rows=100
    )
    s.play(RIGHT, LEFT)
    for first, second in ((0, 1), (1, 0)):
        rows = s.rows_where(first=first)
        assert (s.entities[rows, first, HELD] == s.first_item).all()
        assert (s.entities[rows, second, HELD] == NOTHING).all()


def test_the_second_to_arrive_may_walk_through_after_the_first_has_killed():
    s = Situation([(3, 3, 0), (3, 5, NOTHING)], [(3, 4, FIRE), (6, 5, FIRE)], (6, 4, COLD), [FIRE], rows=100)
    out = s.play(RIGHT, LEFT)
    armed_first, armed_second = s.rows_where(first=0), s.rows_where(first=1)
    assert (out.rewards[armed_first] == [1, STEP_REWARD]).all()
    assert not out.done[armed_first].any()
    # Unarmed first: it dies, the game is lost, and yet the other's move still runs and kills.
    assert (out.rewards[armed_second] == [1, -1]).all()
    assert out.done[armed_second].all()
    assert not out.won.any()


def test_a_killed_monster_fights_nobody_else():
    """A monster walks in on two agents: they fight in this step's agent order, until it is dead."""
    monsters = [(3, 4, FIRE), (6, 6, FIRE)]
    s = Situation([(3, 3, 0), (3, 3, NOTHING)], monsters, None, [FIRE], stage="s3", rows=400, death="individual")
    out = s.play(STAY, STAY)
    came = np.intersect1d(s.rows_where({s.first_monster: LEFT}), s.rows_where(first=0))
    assert len(came) >= 3
    assert (out.rewards[came] == [1, STEP_REWARD]).all()
    assert s.entities[came, 1, PRESENT].all()
    late = np.intersect1d(s.rows_where({s.first_monster: LEFT}), s.rows_where(first=1))
    assert len(late) >= 3
    assert (out.rewards[late] == [1, -1]).all()
    assert not s.entities[late, 1, PRESENT].any()
    assert not s.entities[late, s.first_monster, PRESENT].any()


def test_a_monster_kills_everybody_it_meets_in_turn():
    s = Situation([(3, 3, 0), (3, 3, NOTHING)], [(3, 4, FIRE), (6, 6, FIRE)], None, [COLD], stage="s3", rows=200)
    out = s.play(STAY, STAY)
    rows = s.rows_where({s.first_monster: LEFT})
    assert (out.rewards[rows] == -1).all()
    assert not s.entities[rows, :2, PRESENT].any()
    assert s.entities[rows, s.first_monster, PRESENT].all()


def test_the_kill_is_the_killers_and_the_game_goes_on_until_all_targets_are_dead():
    s = Situation([(3, 3, 0), (5, 5, 1)], [(3, 4, FIRE), (6, 5, COLD)], (1, 1, POISON), [FIRE, COLD])
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [1, STEP_REWARD]
    assert not out.done[0]
    assert not out.terminated.any()
    out = s.play(STAY, DOWN)
    assert out.rewards[0].tolist() == [STEP_REWARD, 1]
    assert out.won[0]
    assert out.terminated.all()
    assert out.length[0] == 2


def test_a_kill_each_in_the_same_step_wins():
    s = Situation([(3, 3, 0), (5, 5, 1)], [(3, 4, FIRE), (6, 5, COLD)], (1, 1, POISON), [FIRE, COLD])
    out = s.play(RIGHT, DOWN)
    assert out.rewards[0].tolist() == [1, 1]
    assert out.won[0]


def test_two_kills_in_one_step_are_worth_two():
    s = Situation([(3, 3, 0), (1, 1, NOTHING)], [(3, 4, FIRE), (3, 4, FIRE)], (6, 1, POISON), [FIRE])
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [2, STEP_REWARD]
    assert out.won[0]


def test_a_death_in_the_same_step_overrides_a_kill():
    """The agent kills the first target and dies on the second: −1, and in team mode the game is lost."""
    for death in ("team", "individual"):
        s = Situation([(3, 3, 0), (1, 1, NOTHING)], [(3, 4, FIRE), (3, 4, COLD)], (6, 1, POISON), [FIRE], death=death)
        out = s.play(RIGHT, STAY)
        assert not s.present(s.first_monster)
        assert s.present(s.first_monster + 1)
        assert out.rewards[0].tolist() == [-1, STEP_REWARD]
        assert bool(out.done[0]) is (death == "team")


def test_a_death_loses_the_game_of_the_team():
    s = Situation([(3, 3, NOTHING), (5, 5, NOTHING)], [(3, 4, FIRE), (6, 5, COLD)], (1, 1, POISON), death="team")
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, STEP_REWARD]
    assert out.done[0]
    assert not out.won[0]
    assert out.terminated.all()
    assert not out.truncated.any()


@pytest.mark.parametrize("death", ["team", "individual"])
def test_all_targets_dead_is_no_win_in_team_mode_where_somebody_died(death):
    s = Situation([(3, 3, NOTHING), (3, 5, 0)], [(3, 4, FIRE)], (1, 1, POISON), [FIRE], rows=100, death=death)
    s.world._games.scalars[:, TARGETS_LEFT] = 1
    out = s.play(RIGHT, LEFT)
    rows = s.rows_where(first=0)  # the unarmed one arrives first and dies, then the armed one kills the last target
    assert (out.rewards[rows] == [-1, 1]).all()
    assert out.done[rows].all()
    assert (out.won[rows] == (death == "individual")).all()


def test_individual_death_terminates_one_and_the_rest_plays_on():
    s = Situation(
        [(3, 3, 0), (5, 5, 1)], [(3, 4, FIRE), (6, 5, COLD)], (1, 1, POISON), [POISON, COLD], death="individual"
    )
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, STEP_REWARD]
    assert out.terminated[0].tolist() == [True, False]
    assert not out.done[0]
    assert out.alive[0].tolist() == [False, True]
    observation = s.world.observation
    assert observation["position"][0, 0].tolist() == [-1, -1]
    assert observation["inventory"][0, 0].tolist() == [0, 0]
    assert observation["action_mask"][0, 0].tolist() == [1, 0, 0, 0, 0]
    assert observation["teammates"][0, 1, 0].tolist() == [-1, -1, 0, 0]
    ally, me = s.vec.spec.vocabulary["ally"], s.vec.spec.vocabulary["me"]
    assert not (observation["grid"][0, 1] == ally).any()
    assert not (observation["grid"][0, 0] == me).any()
    out = s.play(UP, STAY)  # the dead one's action is ignored
    assert out.rewards[0].tolist() == [0, STEP_REWARD]
    assert not out.illegal.any()
    assert not out.terminated.any()
    out = s.play(STAY, DOWN)
    assert out.rewards[0].tolist() == [0, 1]
    assert not out.done[0]
    assert s.present(s.first_monster)


def test_individual_death_loses_when_all_are_dead():
    s = Situation([(3, 3, NOTHING), (5, 5, NOTHING)], [(3, 4, FIRE), (6, 5, COLD)], (1, 1, POISON), death="individual")
    assert not s.play(RIGHT, STAY).done[0]
    out = s.play(STAY, DOWN)
    assert out.rewards[0].tolist() == [0, -1]
    assert out.terminated[0].tolist() == [False, True]
    assert out.done[0]
    assert not out.won[0]
    assert out.returns[0].tolist() == pytest.approx([-1, -1.02])


def test_the_last_agent_dying_with_the_last_target_is_no_win():
    s = Situation([(3, 3, 0), (3, 3, NOTHING)], [(3, 4, FIRE)], None, [FIRE], stage="s1", death="individual", rows=60)
    s.entities[:, 1, PRESENT] = 0  # one died before
    s.entities[:, s.first_monster + 1, [ROW, COLUMN, PRESENT, ELEMENT, TARGET]] = 3, 4, 1, COLD, 0
    s.world._games.scalars[:, TARGETS_LEFT] = 1
    out = s.play(RIGHT, STAY)
    assert out.done.all()
    assert not out.won.any()
    assert (out.rewards[:, 0] == -1).all()


@pytest.mark.parametrize("death", ["team", "individual"])
@pytest.mark.parametrize("held", [0, 1])
def test_engaging_the_distractor_loses_for_all_in_either_mode(death, held):
    s = Situation(
        [(3, 3, held), (5, 5, NOTHING)], [(1, 1, FIRE), (6, 6, FIRE)], (3, 4, COLD), [FIRE, COLD], death=death
    )
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, STEP_REWARD]
    assert out.done[0]
    assert not out.won[0]
    assert out.terminated[0].all()
    assert not out.truncated.any()
    assert out.alive[0].tolist() == [held == 1, True]


def test_teammates_of_the_one_who_engages_keep_their_kill():
    s = Situation([(3, 3, 1), (5, 5, 0)], [(1, 1, FIRE), (5, 6, FIRE)], (3, 4, COLD), [FIRE, COLD])
    out = s.play(RIGHT, RIGHT)
    assert out.rewards[0].tolist() == [-1, 1]
    assert not out.won[0]


def test_time_out_is_a_loss_with_minus_one_for_the_living_and_truncates():
    monsters = [(3, 4, FIRE), (6, 6, COLD)]
    s = Situation([(3, 3, NOTHING), (5, 5, NOTHING)], monsters, (1, 1, POISON), death="individual", max_cycles=3)
    assert not s.play(RIGHT, STAY).done[0]
    assert not s.play(STAY, STAY).done[0]
    out = s.play(STAY, STAY)
    assert out.rewards[0].tolist() == [0, -1]
    assert out.truncated[0].tolist() == [False, True]
    assert not out.terminated.any()
    assert out.done[0]
    assert not out.won[0]
    assert out.length[0] == 3


def test_time_out_overrides_a_kill_that_does_not_win():
    s = Situation([(3, 3, 0), (5, 5, NOTHING)], [(3, 4, FIRE), (6, 6, COLD)], (1, 1, POISON), [FIRE], max_cycles=1)
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, -1]
    assert out.truncated.all()
    assert not out.terminated.any()


def test_a_win_in_the_last_step_is_a_win():
    s = Situation([(3, 3, 0)], [(3, 4, FIRE)], (1, 1, POISON), [FIRE], max_cycles=1)
    out = s.play(RIGHT)
    assert out.won[0]
    assert out.rewards[0, 0] == 1
    assert out.terminated[0, 0]
    assert not out.truncated[0, 0]


def test_a_loss_in_the_last_step_is_no_time_out():
    s = Situation([(3, 3, 0), (5, 5, 0)], [(3, 4, COLD), (1, 2, FIRE)], (1, 1, POISON), [FIRE], max_cycles=1)
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, STEP_REWARD]
    assert out.terminated.all()
    assert not out.truncated.any()


def test_a_death_in_the_last_step_terminates_and_the_rest_is_truncated():
    s = Situation(
        [(3, 3, 0), (5, 5, 0)], [(3, 4, COLD), (1, 2, FIRE)], (1, 1, POISON), [FIRE], max_cycles=1, death="individual"
    )
    out = s.play(RIGHT, STAY)
    assert out.rewards[0].tolist() == [-1, -1]
    assert out.terminated[0].tolist() == [True, False]
    assert out.truncated[0].tolist() == [False, True]


def test_stationary_monsters_stay_but_fight():
    s = Situation([(3, 3, NOTHING)], [(3, 4, FIRE)], (1, 1, POISON), rows=50)
    for _ in range(5):
        s.play(STAY)
        assert {s.cell(s.first_monster, row) for row in range(50)} == {(3, 4)}
    assert (s.play(RIGHT).rewards == -1).all()


def test_a_cell_shows_me_then_allies_then_monsters_then_items():
    s = Situation(
        [(3, 3, NOTHING), (4, 4, NOTHING), (4, 4, NOTHING)],
        [(2, 2, FIRE), (5, 5, FIRE), (4, 5, FIRE)],
        (2, 2, COLD),
        [(3, 3, FIRE), (5, 5, FIRE), (4, 4, COLD)],
    )
    s.play(STAY, STAY, STAY)
    vocabulary, entities = s.vec.spec.vocabulary, s.entities[0]
    me, ally = vocabulary["me"], vocabulary["ally"]

    def words(slot):
        return entities[slot, WORD_1 : WORD_1 + 2].tolist()

    first = s.world.observation["grid"][0, 0]
    second = s.world.observation["grid"][0, 1]
    assert first[3, 3].tolist() == [me, 0, *words(s.first_item)]
    assert second[3, 3].tolist() == [ally, 0, *words(s.first_item)]
    assert first[4, 4].tolist() == [ally, 0, ally, 0]  # the item below is the third
    assert second[4, 4].tolist() == [me, 0, ally, 0]
    assert first[5, 5].tolist() == [*words(s.first_monster + 1), *words(s.first_item + 1)]
    assert sorted([first[2, 2, :2].tolist(), first[2, 2, 2:].tolist()]) == sorted(
        [words(s.first_monster), words(s.distractor)]
    )
    assert first[1, 1].tolist() == [vocabulary["empty"], 0, 0, 0]
    assert first[0, 3].tolist() == [vocabulary["wall"], 0, 0, 0]


@pytest.mark.parametrize("sight", [5, 2.5])
def test_fog_hides_what_is_more_than_sight_away(sight):
    s = Situation([(1, 1, NOTHING)], [(6, 6, FIRE)], (4, 5, COLD), [(5, 4, FIRE), (1, 7, COLD)], size=10, sight=sight)
    s.play(STAY)
    fog = s.vec.spec.vocabulary["fog"]
    rows, columns = np.mgrid[:10, :10]
    far = np.hypot(rows - 1, columns - 1) > sight
    grid = s.world.observation["grid"][0, 0]
    assert ((grid[..., 0] == fog) == far).all()
    assert not grid[far][:, 1:].any()
    assert (far[4, 5], far[5, 4], far[1, 7]) == (sight < 5, sight < 5, True)


def test_seeds_and_outcomes_lie_where_the_tests_look():
    """The hand-made situations write private arrays; this fails if their columns move."""
    s = Situation([(3, 3, NOTHING)], [(3, 5, FIRE)], (1, 1, POISON))
    s.play(STAY)
    scalars = s.world._games.scalars[0]
    assert (scalars[STEP], scalars[TARGETS_LEFT], scalars[OUTCOME]) == (1, 1, RUNNING)
