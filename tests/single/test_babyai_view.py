"""The fast view sees what minigrid sees: the same images, flags and rewards."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip("minigrid", reason="needs the extra `babyai`")

from magrounding.single.babyai import LEVELS, BabyAI
from magrounding.single.babyai.env import make_game
from magrounding.single.babyai.words import raw_image
from tests.full import in_full

AGENT = "agent_0"
STEPS = 80
BEFORE_A_THING = [0.15, 0.15, 0.3, 0.1, 0.1, 0.2]
BEFORE_NOTHING = [0.15, 0.1, 0.5, 0.05, 0.15, 0.05]


def compare(level: str, seeds: range) -> Counter:
    """Play at random beside minigrid's own game; counts what has happened, so that a test sees it was worth it."""
    env, game, happened = BabyAI(level).make_env(), make_game(level), Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        observations, infos = env.reset(seed=seed)
        expected, _ = game.reset(seed=env.game_seed)
        rewards = terminated = truncated = None
        for _ in range(STEPS):
            observation = observations[AGENT]
            assert np.array_equal(raw_image(observation["grid"]), expected["image"])
            assert observation["direction"].tolist() == [expected["direction"]]
            assert infos[AGENT]["text"]["goal"] == expected["mission"]
            if not env.agents:
                break
            # Turning is cheap and teaches nothing: most moves go on, or do something to what stands in front.
            ahead = game.grid.get(*game.front_pos)
            action = int(rng.choice(6, p=BEFORE_A_THING if ahead else BEFORE_NOTHING))
            held = game.carrying
            expected, reward, terminated, truncated, _ = game.step(action)
            observations, rewards, terminations, truncations, infos = env.step({AGENT: action})
            assert rewards[AGENT] == reward
            assert terminations[AGENT] == terminated
            assert truncations[AGENT] == (truncated and not terminated)
            happened["picked up"] += held is None and game.carrying is not None
            happened["dropped"] += held is not None and game.carrying is None
            happened["toggled"] += action == 5 and ahead is not None and ahead.type in ("door", "box")
            happened["steps"] += 1
    return happened


def test_the_view_is_minigrids():
    happened = Counter()
    for level in LEVELS:
        happened += compare(level, range(in_full(50, 3)))
    assert happened["steps"] > 1000
    assert min(happened["picked up"], happened["dropped"], happened["toggled"]) > 10
