"""The kernels play what minigrid plays: the same missions, maps, images, flags and rewards."""

import copy
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("minigrid", reason="needs the extra `babyai`")

import magrounding as mg
from magrounding.errors import ConfigurationError
from magrounding.simulators.env_row import episode_seed
from magrounding.single.babyai import LEVELS, BabyAI
from magrounding.single.babyai.env import make_game
from magrounding.single.babyai.kernels import BORDER
from magrounding.single.babyai.words import cell_codes, raw_image
from tests.full import in_full

AGENT = "agent_0"
STEPS = 80
BEFORE_A_THING = [0.15, 0.15, 0.3, 0.1, 0.1, 0.2]
BEFORE_NOTHING = [0.15, 0.1, 0.5, 0.05, 0.15, 0.05]


def compare(level: str, seeds: range, bot: bool = False) -> Counter:
    """Play beside minigrid's own game; counts what has happened, so that a test sees it was worth it.

    Args:
        bot: follow the bot to the end, with a random move now and then; without, `STEPS` random moves.
    """
    env, game, happened = BabyAI(level).make_env(), make_game(level), Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        observations, infos = env.reset(seed=seed)
        expected, _ = game.reset(seed=env.game_seed)
        while True:
            observation = observations[AGENT]
            assert np.array_equal(raw_image(observation["grid"]), expected["image"])
            assert observation["direction"].tolist() == [expected["direction"]]
            assert infos[AGENT]["text"]["goal"] == expected["mission"]
            over = not env.agents or (happened["steps of this game"] == STEPS and not bot)
            if over or happened["steps of this game"] % 16 == 0:
                inside = np.s_[BORDER : BORDER + game.height, BORDER : BORDER + game.width]
                assert np.array_equal(env._batch.world.codes[0][inside], cell_codes(game.grid.encode()))
            if over:
                break
            # Turning is cheap and teaches nothing: most moves go on, or do something to what stands in front.
            ahead = game.grid.get(*game.front_pos)
            action = int(rng.choice(6, p=BEFORE_A_THING if ahead else BEFORE_NOTHING))
            if bot and rng.random() < 0.9 and (labels := env.best_actions()[0]).sum() == 1:
                action = int(labels.argmax())
            held = game.carrying
            expected, reward, terminated, truncated, _ = game.step(action)
            observations, rewards, terminations, truncations, infos = env.step({AGENT: action})
            assert rewards[AGENT] == reward
            assert terminations[AGENT] == terminated
            assert truncations[AGENT] == (truncated and not terminated)
            happened["picked up"] += held is None and game.carrying is not None
            happened["dropped"] += held is not None and game.carrying is None
            happened["toggled"] += action == 5 and ahead is not None and ahead.type in ("door", "box")
            happened["won"] += terminated
            happened["steps"] += 1
            happened["steps of this game"] += 1
        happened["steps of this game"] = 0
    return happened


def test_games_are_minigrids():
    happened = Counter()
    for level in LEVELS:
        happened += compare(level, range(in_full(1000, 2)))
        happened += compare(level, range(in_full(1000, 1)), bot=True)
    assert happened["steps"] > 1000
    assert min(happened["picked up"], happened["dropped"], happened["toggled"], happened["won"]) > 5


def test_games_of_a_batch_are_those_of_its_envs():
    """A copy goes on as the batch would, and a game that has ended is followed by the next."""
    vec, rng, ended = mg.make_vec("babyai", 3, level="PutNextLocal", max_cycles=20), np.random.default_rng(0), 0
    envs = [BabyAI("PutNextLocal", max_cycles=20).make_env() for _ in range(3)]
    shown = [env.reset(seed=5 + row)[0][AGENT] for row, env in enumerate(envs)]
    observation, _ = vec.reset(seed=5)
    for step in range(60):
        assert all(np.array_equal(observation["grid"][row, 0], each["grid"]) for row, each in enumerate(shown))
        if step == 30:
            vec = copy.deepcopy(vec)
        actions = rng.integers(6, size=(3, 1))
        observation, rewards, terminated, truncated, info = vec.step(actions)
        for row, env in enumerate(envs):
            seen, reward, wins, ends, _ = env.step({AGENT: int(actions[row, 0])})
            shown[row] = seen[AGENT]
            assert (rewards[row, 0], terminated[row, 0]) == (np.float32(reward[AGENT]), wins[AGENT])
            assert (truncated[row, 0], info.done[row]) == (ends[AGENT], not env.agents)
            if not env.agents:
                ended += 1
                shown[row] = env.reset(seed=episode_seed(5 + row, step // 20 + 1))[0][AGENT]
    assert ended >= 9


def test_another_minigrid_is_not_asked():
    env = BabyAI("GoToLocal").make_env()
    env.reset(seed=0)
    env._mission = "go to the green moon"
    with pytest.raises(ConfigurationError):
        env.best_actions()
