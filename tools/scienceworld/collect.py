"""Lists the words of ScienceWorld's texts: `python -m tools.scienceworld.collect --out words.json`.

It plays training variations of every task: the first along its gold path, that one and others at random. What is kept
are the words of all texts and valid actions, in the order of the alphabet; numbers are always spelt. It also says how
long the texts were.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version

from magrounding.output import show_anything
from magrounding.single.scienceworld.java import Java
from magrounding.single.scienceworld.options import TASKS, variations
from magrounding.single.scienceworld.simulation import Moment, Simulation
from magrounding.single.tokenizer import split
from magrounding.storage import json_text, user_path

HEAP = 400


def main() -> None:
    """Play, and write the list."""
    show_anything()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=user_path, required=True, help="the file to write")
    parser.add_argument("--variations", type=int, default=3, help="training variations of each task")
    parser.add_argument("--steps", type=int, default=15, help="random steps in each")
    parser.add_argument("--tasks", nargs="*", default=TASKS, help="which tasks")
    arguments = parser.parse_args()
    simulation = Simulation(Java(HEAP))
    lengths: dict[str, Counter[int]] = {}
    words: set[str] = set()
    for task in arguments.tasks:
        for name, text in _texts(simulation, task, arguments.variations, arguments.steps):
            found = split(text)
            words.update(found)
            lengths.setdefault(name, Counter())[len(found)] += 1
        print(f"{task}: {len(words)} words", flush=True)
    for name, counts in lengths.items():
        print(f"{name}: longest {max(counts)}, of {counts.total()} texts")
    content = {
        "simulator": f"scienceworld {version('scienceworld')}",
        "words": sorted(word for word in words if not word.isdecimal()),
    }
    arguments.out.write_text(json_text(content, indent=0) + "\n", encoding="utf-8")


def _texts(simulation: Simulation, task: str, count: int, steps: int) -> Iterator[tuple[str, str]]:
    """(kind, text) of everything that is shown."""
    rng, official = random.Random(1), variations(task)["train"]
    first, others = official[0], rng.sample(official[1:], min(count, len(official)) - 1)
    simulation.begin(task, first, "easy", gold=True)
    gold = simulation.gold_path()
    moment = simulation.begin(task, first, "easy")
    for command in gold:
        yield from _shown(moment)
        moment = simulation.step(command)
        if moment.over or moment.score < 0:
            break
    yield from _shown(moment)
    for variation in (first, *others):
        moment = simulation.begin(task, variation, "easy")
        yield "task", simulation.task_text()
        for _ in range(steps):
            yield from _shown(moment)
            moment = simulation.step(rng.choice([a for a in moment.actions if not a.startswith(("focus", "reset"))]))
            if moment.over or moment.score < 0:
                break


def _shown(moment: Moment) -> Iterator[tuple[str, str]]:
    yield "observation", moment.observation
    yield "look", moment.look
    yield "inventory", moment.inventory
    yield from (("choice", action) for action in moment.actions)


if __name__ == "__main__":
    main()
