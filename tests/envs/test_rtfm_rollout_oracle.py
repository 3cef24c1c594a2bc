"""The oracle by roll-outs: better than the rules, never peeking, the same for the same seed; and what moves cost."""

import numpy as np
import pytest

import magrounding as mg
from magrounding.envs.rtfm.arrays import COLUMN, ELEMENT, HELD, PRESENT, ROW, TARGET
from magrounding.envs.rtfm.oracle import Oracle, RolloutOracle, Search
from magrounding.errors import ConfigurationError
from magrounding.seeding import DYNAMICS
from magrounding.teams.actor import make_expert
from magrounding.teams.evaluate import REPORT_SEED, play
from magrounding.teams.lineup import Lineup
from tests.full import in_full, in_the_full_suite

STAY, UP, DOWN, LEFT, RIGHT = range(5)
COLD, FIRE = range(2)


def games(count, **options):
    return mg.make_vec("ma_rtfm", count, **{"stage": "s3", "agents": 3, "max_cycles": 80, **options})


@in_the_full_suite("a core minute")
@pytest.mark.parametrize(("agents", "stage", "bar"), [(2, "s3", 0.96), (3, "s3", 0.87), (3, "s5", 0.87)])
def test_it_beats_the_rules(agents, stage, bar):
    vec = games(2000, agents=agents, stage=stage, split="eval")
    by_rules = play(Oracle(vec), vec, 2000, REPORT_SEED).won.mean()
    assert play(RolloutOracle(vec), vec, 2000, REPORT_SEED).won.mean() > max(bar, by_rules)


def test_it_looks_at_no_draw_of_the_world_and_changes_nothing():
    rows = in_full(30, 9)
    vec, some = games(rows), slice(rows // 3, 2 * rows // 3)
    observation, _ = vec.reset(seed=3)
    world, oracle = vec.world._games, RolloutOracle(vec)
    before, labels = [array.copy() for array in world], oracle.best_actions()
    assert all(np.array_equal(was, now) for was, now in zip(before, world, strict=True))
    world.keys[:, DYNAMICS] += 1
    assert np.array_equal(oracle.best_actions(), labels)
    assert np.array_equal(RolloutOracle(vec).best_actions(np.arange(rows)[some])[some], labels[some])
    assert not np.array_equal(Oracle(vec).best_actions(), labels)
    assert labels.any(2).all()
    assert not (labels & (observation["action_mask"] == 0)).any()


def test_where_monsters_stand_still_the_rules_are_all_there_is():
    vec = games(20, stage="s2")
    vec.reset(seed=1)
    assert np.array_equal(RolloutOracle(vec).best_actions(), Oracle(vec).best_actions())
    assert RolloutOracle(vec).costs_to_go is None


@pytest.mark.parametrize("oracle", [Oracle, RolloutOracle])
def test_regrets_are_the_share_of_the_chances_that_a_move_throws_away(oracle):
    vec = games(1, agents=2)
    vec.reset(seed=0)
    entities = vec.world._games.entities[0]
    entities[:, PRESENT] = 0
    first_item = 2 + vec.world._rules.monsters
    entities[[first_item, 2, 3], ELEMENT] = COLD, COLD, FIRE
    agent, monster = [ROW, COLUMN, PRESENT, HELD], [ROW, COLUMN, PRESENT, TARGET]
    entities[0, agent] = 3, 3, 1, first_item
    entities[1, agent] = 6, 6, 1, -1
    entities[2, monster] = 3, 4, 1, 1  # beside it what it beats
    entities[3, monster] = 2, 3, 1, 0  # above what kills it
    teacher = oracle(vec)
    best, costs_to_go = teacher.best_actions()[0, 0], teacher.costs_to_go[0, 0]
    assert np.flatnonzero(best) == RIGHT
    assert costs_to_go[RIGHT] == 0
    assert costs_to_go[UP] == pytest.approx(1)
    assert 0 < costs_to_go[DOWN] < 1


def test_a_move_found_by_roll_outs_is_the_one_without_costs_to_go():
    vec = games(in_full(60, 20))
    observation, _ = vec.reset(seed=3)
    rules, oracle, changed = Oracle(vec), RolloutOracle(vec), 0
    for _ in range(6):
        first, best = rules.best_actions(), oracle.best_actions()
        legal, other = observation["action_mask"] > 0, (first != best).any(2)
        least = np.where(legal & ~best, oracle.costs_to_go, 1).min(2)
        assert (oracle.costs_to_go[best] == 0).all()
        assert (least[other] > 0).all()  # the rules' best among them
        assert (least[other] == np.where(first, oracle.costs_to_go, 1).min(2)[other]).all()
        assert (oracle.costs_to_go >= rules.costs_to_go - 1e-6)[~best].all()
        changed += other.sum()
        observation, *_ = vec.step(best.argmax(2))
    assert changed


def test_it_plays_all_of_rtfms_family_and_nothing_else():
    vec = mg.make_vec("rock_paper_scissors", 4)
    vec.reset(seed=0)
    assert np.array_equal(RolloutOracle(vec).best_actions(), Oracle(vec).best_actions())
    with pytest.raises(ConfigurationError):
        RolloutOracle(mg.make_vec("messenger", 1))
    with pytest.raises(ConfigurationError):
        RolloutOracle(vec, Search(first_games=21))


def test_it_is_found_by_its_name():
    vec = games(2)
    assert type(make_expert(vec)) is Oracle
    assert type(make_expert(vec, "rollout")) is RolloutOracle
    assert type(Lineup.parse("oracle:rollout", 3).players[0].build_actor(vec, 0)) is RolloutOracle
    with pytest.raises(ConfigurationError):
        make_expert(vec, "crystal ball")
    with pytest.raises(ConfigurationError):
        make_expert(mg.make_vec("ma_messenger", 1), "rollout")
