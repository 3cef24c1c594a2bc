"""The bot: as good as minigrid's, the same when it is swift, and safe to ask."""

import numpy as np
import pytest

pytest.importorskip("minigrid", reason="needs the extra `babyai`")

from minigrid.envs.babyai import goto

from magrounding.single.babyai import LEVELS, BabyAI, expert
from magrounding.single.babyai.expert import Expert
from tests.full import in_full

AGENT = "agent_0"
OFTEN = 0.99
ENDLESS = 6
"""A seed of minigrid with which its bot plans for ever in GoToImpUnlock."""


def compare(level: str, seeds: range, noise: float = 0.0) -> int:
    """The swift bot and minigrid's own, asked in the same game; steps compared."""
    env, plain, steps = BabyAI(level).make_env(), BabyAI(level, fast_view=False).make_env(), 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        env.reset(seed=seed)
        plain.reset(seed=seed)
        while env.agents:
            labels = env.best_actions()
            assert np.array_equal(labels, plain.best_actions()), (level, seed, steps)
            if labels.all():
                break
            action = int(rng.integers(6)) if rng.random() < noise else int(labels[0].argmax())
            env.step({AGENT: action})
            plain.step({AGENT: action})
            steps += 1
    assert env.expert_failures == plain.expert_failures
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_bot_wins_nearly_always(level):
    env, won, games = BabyAI(level).make_env(), 0, in_full(100, 10)
    for seed in range(games):
        env.reset(seed=seed)
        while env.agents:
            infos = env.step({AGENT: int(env.best_actions()[0].argmax())})[4]
        won += infos[AGENT]["won"]
    assert won >= OFTEN * games


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_the_swift_bot_is_the_bot_over_many_seeds(level):
    seeds = in_full(50, 5)
    assert compare(level, range(seeds)) > 2 * seeds
    assert compare(level, range(50, 50 + in_full(10, 2)), noise=0.15) > in_full(20, 4)


def test_a_plan_without_end_is_cut():
    game = goto.GoToImpUnlock()  # minigrid's own: in ours, a key to every door can be found
    game.reset(seed=ENDLESS)
    bot, outcome, steps = Expert(game, None), False, 0
    while not bot.failed and not outcome:
        action = int(bot.labels()[0].argmax())
        _, _, outcome, over, _ = game.step(action)
        outcome = outcome or over
        bot.follow(action)
        steps += 1
    assert bot.failed
    assert bot._plan.added > expert.MAX_SUBGOALS
    assert bot.labels().all()


def test_an_opened_box_ends_the_advice():
    env = BabyAI("GoToLocal").make_env()
    for seed in range(100):
        env.reset(seed=seed)
        before = env.best_actions()
        assert before.shape == (1, 7)
        assert before.dtype == np.bool_
        assert before.sum() == 1
        rng = np.random.default_rng(seed)
        while env.agents:
            ahead = env.game.grid.get(*env.game.front_pos)
            opens = ahead is not None and ahead.type == "box"
            infos = env.step({AGENT: 5 if opens else int(rng.integers(3))})[4]
            if opens:
                break
        else:
            continue
        break
    else:
        pytest.fail("no box was met")
    if env.agents:
        assert infos[AGENT]["expert_failed"] is True
        assert env.best_actions().all()
        assert env.expert_failures == 1
        assert env.step({AGENT: 6})[4][AGENT]["expert_failed"] is True
    _, infos = env.reset()
    assert "expert_failed" not in infos[AGENT]
    assert env.best_actions().sum() == 1
    assert env.expert_failures == 1
