"""The stock engine of ALFWorld, and how fast ours is beside it."""

from __future__ import annotations

import random
import statistics
import time
from importlib import import_module

import magrounding as mg
from magrounding.single.alfworld import package
from magrounding.single.alfworld.games import game_of, shipped_scenes


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
