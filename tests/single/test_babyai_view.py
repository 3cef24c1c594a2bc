"""The fast view sees what minigrid sees: the same images, flags and rewards. As a program: speeds."""

import contextlib
import io
import sys
import time
from collections import Counter

import numpy as np
import pytest

pytest.importorskip("minigrid", reason="needs the extra `babyai`")

from magrounding.single.babyai import LEVELS, BabyAI
from magrounding.single.babyai.env import game_seed, make_game
from magrounding.single.babyai.words import raw_image
from tests.full import in_full, in_the_full_suite

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


class Bare:
    """Minigrid's own game with the env's reset and step, and nothing else."""

    def __init__(self, level: str) -> None:
        self.game, self.level, self.episode = make_game(level), level, -1

    def reset(self) -> None:
        self.episode += 1
        with contextlib.redirect_stdout(io.StringIO()):
            self.game.reset(seed=game_seed(0, self.episode, "train"))

    def step(self, action: int) -> bool:
        _, _, terminated, truncated, _ = self.game.step(action)
        return terminated or truncated


class Ours:
    """The env, reset to the same games."""

    def __init__(self, level: str, *, fast_view: bool) -> None:
        self.env = BabyAI(level, fast_view=fast_view).make_env()
        self.seed: int | None = 0

    def reset(self) -> None:
        self.env.reset(seed=self.seed)
        self.seed = None

    def step(self, action: int) -> bool:
        self.env.step({AGENT: action})
        return not self.env.agents


def speed(player: Bare | Ours, steps: int) -> tuple[float, float]:
    """Steps a second at random, with the time that resets take and without."""
    actions, resets = np.random.default_rng(0).integers(7, size=steps).tolist(), 0.0
    player.reset()
    player.step(0)  # compiles
    start = time.perf_counter()
    for action in actions:
        if player.step(action):
            pause = time.perf_counter()
            player.reset()
            resets += time.perf_counter() - pause
    whole = time.perf_counter() - start
    return steps / whole, steps / (whole - resets)


@pytest.mark.alone
@in_the_full_suite("speeds, which others' work disturbs")
def test_the_fast_view_is_faster():
    """Measured 4 to 7 times; the bar is low, as machines are busy."""
    ours = max(speed(Ours("GoTo", fast_view=True), 500)[1] for _ in range(3))
    assert ours > 1.25 * max(speed(Bare("GoTo"), 500)[1] for _ in range(3))


if __name__ == "__main__":
    for name in sys.argv[1:] or ("GoToLocal", "GoTo"):
        players = Bare(name), Ours(name, fast_view=False), Ours(name, fast_view=True)
        for label, player in zip(("minigrid", "its view", "our view"), players, strict=True):
            rates = speed(player, 10000)
            print(f"{name:16s} {label:9s} {rates[0]:7.0f} steps/s with resets, {rates[1]:7.0f} without", flush=True)
