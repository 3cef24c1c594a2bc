"""BabyAI behind the door: what it says of itself, and what every env promises."""

import copy
import warnings

import numpy as np
import pytest

from magrounding.single.babyai import LEVELS, SPLITS, BabyAI
from magrounding.single.babyai.words import VOCABULARY

with warnings.catch_warnings():
    # PettingZoo's test package imports its own example environments by a route that it has itself deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)

AGENT = "agent_0"


@pytest.fixture
def minigrid():
    return pytest.importorskip("minigrid", reason="needs the extra `babyai`")


def play(env, actions):
    """All that the env gives out for these actions, up to the end of the episode."""
    results = []
    for action in actions:
        if not env.agents:
            break
        results.append(copy.deepcopy(env.step({AGENT: int(action)})))
    return results


@pytest.mark.parametrize("level", LEVELS)
def test_limits_missions_and_spaces(minigrid, level):
    config = BabyAI(level)
    env, spec = config.make_env(), config.describe()
    limits = set()
    for seed in range(12):
        observations, infos = env.reset(seed=seed)
        assert env.observation_space(AGENT).contains(observations[AGENT])
        assert list(observations[AGENT]) == list(env.observation_space(AGENT).spaces)
        goal = VOCABULARY.decode(observations[AGENT]["goal"])
        assert goal == infos[AGENT]["text"]["goal"].replace(",", "")
        limits.add(env.game.max_steps)
    assert max(limits) <= spec.max_cycles
    if "Seq" not in level and level != "BossLevel":  # there the largest limit is rare
        assert max(limits) == spec.max_cycles


@pytest.mark.parametrize("level", ["Unlock", "GoToImpUnlock"])
def test_a_key_to_the_locked_room_lies_outside_and_other_games_are_minigrids_own(minigrid, level):
    from minigrid.envs.babyai import goto, unlock

    env, redrawn = BabyAI(level).make_env(), 0
    stock = {"Unlock": unlock.Unlock, "GoToImpUnlock": goto.GoToImpUnlock}[level]()
    for seed in range(100):
        env.reset(seed=seed)
        stock.reset(seed=env.game_seed)
        possible = [has_a_key_outside(game) for game in (env.game, stock)]
        assert possible[0]
        assert possible[1] == (env.game.grid == stock.grid and env.game.mission == stock.mission)
        redrawn += not possible[1]
    assert 1 <= redrawn <= 15


def has_a_key_outside(game):
    """Whether a key to the locked room of minigrid's game lies in another one."""
    doors = [thing for thing in game.grid.grid if thing is not None and thing.type == "door" and thing.is_locked]
    assert len(doors) == 1
    locked = next(room for row in game.room_grid for room in row if room.locked)
    cells = [(i, j) for i in range(game.width) for j in range(game.height) if not locked.pos_inside(i, j)]
    things = [game.grid.get(*cell) for cell in cells]
    return any(thing is not None and (thing.type, thing.color) == ("key", doors[0].color) for thing in things)


def test_splits_are_disjoint_ranges_of_seeds(minigrid):
    ranges = []
    for split in SPLITS:
        env = BabyAI("GoToObj", split=split).make_env()
        seeds = []
        for seed in range(20):
            env.reset(seed=seed)
            seeds.append(env.game_seed)
            env.reset()
            seeds.append(env.game_seed)
        assert len(set(seeds)) == 40
        ranges.append({seed >> 60 for seed in seeds})
    assert ranges == [{0}, {1}, {2}]


def test_a_win_pays_and_a_time_out_does_not(minigrid):
    env = BabyAI("GoToLocal").make_env()
    for seed in range(5):
        env.reset(seed=seed)
        steps = 0
        while env.agents:
            result = env.step({AGENT: int(env.best_actions()[0].argmax())})
            steps += 1
        assert result[4][AGENT]["won"] is True
        assert result[1][AGENT] == 1 - 0.9 * steps / 64
        assert (result[2][AGENT], result[3][AGENT]) == (True, False)
    env = BabyAI("GoToLocal", max_cycles=3).make_env()
    env.reset(seed=0)
    results = play(env, [6, 6, 6, 6])
    assert len(results) == 3
    _, rewards, terminations, truncations, infos = results[-1]
    assert (rewards[AGENT], terminations[AGENT], truncations[AGENT], infos[AGENT]["won"]) == (0.0, False, True, False)


def test_a_win_in_the_last_step_is_no_truncation(minigrid):
    env = BabyAI("GoToObj").make_env()
    env.reset(seed=1)
    actions = []
    while env.agents:
        actions.append(int(env.best_actions()[0].argmax()))
        env.step({AGENT: actions[-1]})
    env = BabyAI("GoToObj", max_cycles=len(actions)).make_env()
    env.reset(seed=1)
    _, rewards, terminations, truncations, infos = play(env, actions)[-1]
    assert (terminations[AGENT], truncations[AGENT], infos[AGENT]["won"]) == (True, False, True)
    assert rewards[AGENT] == pytest.approx(0.1)


def test_the_scene_is_what_the_agent_sees(minigrid):
    """Cell by cell: things, walls and what is out of sight are those of the observation, and nothing else."""
    env = BabyAI("GoTo").make_env()
    observations, _ = env.reset(seed=3)
    hidden, rng = 0, np.random.default_rng(0)
    while env.agents:
        grid, scene = observations["agent_0"]["grid"], env.scene()
        assert scene.goal == env.game.mission
        shown = np.full((7, 7), "empty", object)
        shown[scene.walls], shown[scene.unseen] = "wall", "unseen"
        for figure in scene.figures[1:]:
            shown[figure.row, figure.column] = f"{figure.quality} {figure.name}"
        for at in np.ndindex(7, 7):
            kind, colour, state = (VOCABULARY.decode([word]) for word in grid[at])
            words = kind if kind in ("empty", "wall", "unseen") else f"{state} {colour} {kind}".strip()
            assert at == (6, 3) or shown[at] == words
        hidden += scene.unseen.sum()
        agent = scene.figures[0]
        assert (agent.row, agent.column, agent.kind, agent.quality) == (6, 3, "agent", "facing up")
        observations, *_ = env.step({"agent_0": int(rng.integers(7))})
    assert hidden > 0
    env.close()
