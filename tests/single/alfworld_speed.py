"""How fast ALFWorld is beside the stock engine, and with two workers: `python -m tests.single.alfworld_speed`."""

from __future__ import annotations

import os
import random
import statistics
import time
from pathlib import Path

import magrounding as mg
from magrounding.single.alfworld import package
from magrounding.single.alfworld.games import shipped_scenes
from magrounding.single.alfworld.problem import game_of
from tests.simulators.speed import microseconds


class Stock:
    """The engine as the package has it, its names made by the package's own class; nothing is remembered."""

    def __init__(self):
        self.env = package.engine().PddlEnv()
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
        game, rng = game_of(shipped_scenes("train")[env._number]), random.Random(seed)
        resets.append((_time(lambda: stock.start(game)), _time(lambda: env.reset(seed=seed))))  # noqa: B023
        for _ in range(steps):
            if env.agents:
                action = rng.randrange(len(env._choices))
                command = env._choices[action]
                pair = _time(lambda: stock.step(command)), _time(lambda: env.step({"agent_0": action}))  # noqa: B023
                turns.append(pair)
    return [tuple(map(statistics.median, zip(*pairs, strict=True))) for pairs in (resets, turns)]


def two_workers(num_envs=8, steps=20, rounds=9):
    """Median, least and largest ratio of the time of a step without workers to that with two, measured in turns."""
    alone, many = (mg.make_vec("alfworld", num_envs, workers=workers) for workers in (0, 2))
    try:
        for vec in (alone, many):
            vec.reset(seed=0)
            microseconds(vec, 120)  # every game has been seen before
        times = [(microseconds(alone, steps), microseconds(many, steps)) for _ in range(rounds)]
    finally:
        many.close()
        alone.close()
    ratios = [serial / process for serial, process in times]
    return statistics.median(ratios), min(ratios), max(ratios)


def processor_time_of_two_workers(num_envs=8, steps=40):
    """Milliseconds of CPU of a step of a batch: (without workers, this process with two, the busier worker).

    For a busy machine: with a core for each worker a step takes at most what this process and the busier worker take.
    """
    alone, before = mg.make_vec("alfworld", num_envs, workers=0), _children()
    many = mg.make_vec("alfworld", num_envs, workers=2)
    workers = sorted(_children() - before)
    try:
        spent = []
        for vec in (alone, many):
            vec.reset(seed=0)
            microseconds(vec, 120)
            start = [time.process_time(), *map(_seconds_of, workers)]
            microseconds(vec, steps)
            end = [time.process_time(), *map(_seconds_of, workers)]
            spent.append([(b - a) / steps * 1e3 for a, b in zip(start, end, strict=True)])
    finally:
        many.close()
        alone.close()
    return spent[0][0], spent[1][0], max(spent[1][1:])


def _children():
    """The processes that this one has started, by number."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def _seconds_of(pid):
    """Seconds of CPU of a process."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _time(act):
    start = time.process_time()
    act()
    return (time.process_time() - start) * 1e3


if __name__ == "__main__":
    for what, (stock, ours) in zip(("reset", "step"), beside_the_stock_engine(8, 10), strict=True):
        print(f"{what}: stock {stock:.1f} ms, ours {ours:.1f} ms of CPU: {stock / ours:.1f} times")
    serial, parent, worker = processor_time_of_two_workers()
    print(
        f"CPU of a step of 8 games: {serial:.1f} ms in one process; with two workers {parent:.1f} here, {worker:.1f} "
        f"in the busier worker: {serial / (parent + worker):.2f} times as fast where each has a core"
    )
    print("two workers: {:.2f} times one process ({:.2f} … {:.2f})".format(*two_workers()))
