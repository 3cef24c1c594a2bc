"""How fast NetHack is beside nle itself, and with two workers: `python -m tests.single.nethack_speed`."""

from __future__ import annotations

import statistics
import time

import numpy as np
from nle.env import tasks

import magrounding as mg
from magrounding.single.one_agent import AGENT
from tests.simulators.speed import microseconds, two_workers_in_training

SHOWN = ("glyphs", "chars", "colors", "blstats", "message")


def beside_nle(games, steps=80):
    """Processor time of nle's own games as a share of ours, with what we show and with all that nle shows.

    The same games are played by all in turns, resets among them, and each as long as the shortest.
    """
    env = mg.make("nethack", max_cycles=10 * steps)
    alone = [tasks.NetHackScore(observation_keys=SHOWN), tasks.NetHackScore()]
    env.reset(seed=0)  # compiles
    ratios = []
    for seed in range(games):
        actions = np.random.default_rng(seed).integers(0, 23, steps).tolist()
        start, played = time.process_time(), 0
        env.reset(seed=seed)
        for action in actions:
            env.step({AGENT: action})
            played += 1
            if not env.agents:
                break
        ours = time.process_time() - start
        theirs = []
        for each in alone:
            start = time.process_time()
            each.seed(core=env.game_seed, disp=env.game_seed, reseed=False)
            each.reset()
            for action in actions[:played]:
                if each.step(action)[2]:
                    break
            theirs.append(time.process_time() - start)
        ratios.append((theirs[0] / ours, theirs[1] / ours))
    for each in (env, *alone):
        each.close()
    return [statistics.median(each) for each in zip(*ratios, strict=True)]


def two_workers(num_envs=64, steps=200, rounds=15):
    """How many times faster two workers are than one in training, by the clock: median, least, most.

    A game that begins anew takes as long as 60 steps. Where both halves are played at once, all workers wait for it in
    every step; played in turns, as rollouts do, a worker that is behind has a whole step to catch up. The more games
    there are, the less it is behind: with 32 the ratio was 1.4, with 64, as many as `quick_rl` plays, 1.8.
    """
    return two_workers_in_training("nethack", num_envs, steps, rounds)


def steps_a_second(num_envs=32, steps=200, workers=0):
    """Of a batch, by the clock."""
    with mg.make_vec("nethack", num_envs, workers=workers) as vec:
        vec.reset(seed=0)
        return num_envs / microseconds(vec, steps) * 1e6


if __name__ == "__main__":
    print(
        "steps per processor second beside nle's: {:.2f} of what we show, {:.2f} of all it has".format(*beside_nle(100))
    )
    print(
        f"a batch of 32, in this process: {steps_a_second():,.0f} steps/s; workers=2: {steps_a_second(workers=2):,.0f}"
    )
    print("two workers: {:.2f} times one ({:.2f} … {:.2f})".format(*two_workers()))
