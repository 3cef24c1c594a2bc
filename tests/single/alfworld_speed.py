"""How fast ALFWorld is beside the stock engine, and with two workers: `python -m tests.single.alfworld_speed`."""

from __future__ import annotations

import random
import statistics
import time
from importlib import import_module

import magrounding as mg
from magrounding.single.alfworld import package
from magrounding.single.alfworld.games import game_of, shipped_scenes
from tests.simulators.speed import say_two_workers


class Stock:
    """The engine as the package has it, its names made by the package's own class; nothing is remembered."""

    def __init__(self):
        package.engine()
        self.env = import_module("textworld.envs.pddl.pddl").PddlEnv()
        self.env.request_infos.admissible_commands = True

    def start(self, game):
        with package.untouched():
            self.env.load(game)
            names = package.part("agents.utils.misc").Demangler(game_infos=self.env._entity_infos)
            for info in self.env._entity_infos.values():
                info.name = names.demangle_alfred_name(info.id)
            return self.said(self.env.reset())

    def step(self, command):
        return self.said(self.env.step(command)[0])

    def said(self, state):
        return state["feedback"], tuple(state["admissible_commands"]), state["won"]


def beside_the_stock_engine(games, steps):
    """Milliseconds of CPU: (stock, ours) of a reset and of a step, medians of games played by both in turns.

    Ours is the whole env, with words and choices, which the stock engine lacks; a reset of a game seen before.
    """
    stock, env = Stock(), mg.make("alfworld")
    resets, turns = [], []
    for seed in range(games):
        env.reset(seed=seed)
        game, rng = game_of(shipped_scenes("train")[env._loaded[0]]), random.Random(seed)
        resets.append((_time(lambda: stock.start(game)), _time(lambda: env.reset(seed=seed))))  # noqa: B023
        for _ in range(steps):
            if env.agents:
                action = rng.randrange(len(env._choices))
                command = env._choices[action]
                pair = _time(lambda: stock.step(command)), _time(lambda: env.step({"agent_0": action}))  # noqa: B023
                turns.append(pair)
    return [tuple(map(statistics.median, zip(*pairs, strict=True))) for pairs in (resets, turns)]


def _time(act):
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1e3


if __name__ == "__main__":
    for what, (stock, ours) in zip(("reset", "step"), beside_the_stock_engine(8, 10), strict=True):
        print(f"{what}: stock {stock:.1f} ms, ours {ours:.1f} ms of CPU: {stock / ours:.1f} times")
    # A worker translates each scene when it first meets it, as slowly as 50 steps: these have all been met.
    say_two_workers("alfworld", 16, 50, 9, warm=1500, split="valid")
