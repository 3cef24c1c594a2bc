"""How fast ScienceWorld is beside the stock env, and with two workers: `python -m tests.single.scienceworld_speed`.

Both give the same in each step: observation, look, inventory, valid actions and score. Ours has the words of all as
arrays besides. Processor time is that of Python and of the Java process that belongs to it.
"""

from __future__ import annotations

import random
import time

from scienceworld import ScienceWorldEnv

import magrounding as mg
from magrounding.experiment.presets.scienceworld import QUICK_TASKS
from tests.simulators.speed import children, say_two_workers, seconds_of

AGENT = "agent_0"


def beside_the_stock_env(task, games=2, steps=30, warm=10):
    """Milliseconds of processor time of a step, (stock, ours): the same actions of the same variations, in turns."""
    others = children()
    stock = ScienceWorldEnv("", envStepLimit=10_000)
    (its,) = children() - others
    env = mg.make("scienceworld", task=task, max_cycles=10_000, failure_penalty=False)
    env.reset(seed=0)
    (own,) = children() - others - {its}
    spent, counted = [0.0, 0.0], 0
    for seed in range(games):
        rng = random.Random(seed)
        _, infos = env.reset(seed=seed)
        stock.load(task, env.variation, "easy")
        _, info = stock.reset()
        for step in range(warm + steps):
            offered = infos[AGENT]["text"]["choices"]
            valid = set(info["valid"])
            both = [row for row, each in enumerate(offered) if each in valid and not each.startswith("focus")]
            row = rng.choice(both)
            start = _clocks(its), _clocks(own)
            *_, info = stock.step(offered[row])
            between = _clocks(its), _clocks(own)
            *_, infos = env.step({AGENT: row})
            end = _clocks(own)
            if step >= warm:
                counted += 1
                spent[0] += between[0] - start[0]
                spent[1] += end - between[1]
    stock.close()
    env.close()
    return tuple(each / counted * 1e3 for each in spent)


def _clocks(java):
    """Seconds of processor time of this process and a Java process so far."""
    return time.process_time() + seconds_of(java)


if __name__ == "__main__":
    for task in QUICK_TASKS:
        stock, ours = beside_the_stock_env(task)
        print(f"{task}: stock {stock:.1f} ms of processor time a step, ours {ours:.1f} ms: {stock / ours:.1f} times")
    # As many games as training plays; Java compiles for two hundred steps, on whichever core is idle.
    say_two_workers("scienceworld", 32, 10, 15, warm=300, task="find-plant")
