"""Collects gold paths: `python -m magrounding.single.scienceworld.collect_gold --out gold.jsonl`.

It finds the gold path of some training and validation variations of every task, plays it, and writes a line for each
(`trajectories.py`). A path takes seconds and is kept in the user's cache; the same command goes on where it was
stopped. The variations of a task come in an order of their own, so that more of them are the same ones and others; the
tasks take turns, so that a file that is not finished has something of all. Test variations are never collected.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from magrounding.errors import MagroundingError
from magrounding.output import show_anything
from magrounding.simulators.faults import SimulatorError
from magrounding.single.scienceworld.gold import find_gold, play_gold
from magrounding.single.scienceworld.java import Java, shared_java
from magrounding.single.scienceworld.tasks import TASKS, task_name, variations
from magrounding.single.scienceworld.trajectories import append_trajectory, mend, read_trajectories, trajectory_of
from magrounding.storage import user_path

HEAP = 400


class Item(NamedTuple):
    """A variation to collect."""

    task: str
    split: str
    variation: int
    listed: bool


def main() -> int:
    """Find, play and write."""
    show_anything()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=user_path, required=True, help="the file to write, or to go on with")
    parser.add_argument("--train", type=int, default=12, help="training variations of each task")
    parser.add_argument("--listed", type=int, default=10, help="of them, those with what is valid along them")
    parser.add_argument("--valid", type=int, default=5, help="validation variations of each task")
    parser.add_argument("--tasks", nargs="*", default=TASKS, help='names, or "T0" to "T29"; all by default')
    parser.add_argument("--simplifications", default="easy", help="as in the world's options")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each path")
    arguments = parser.parse_args()
    try:
        lost = collect(
            arguments.out,
            wanted([task_name(task) for task in arguments.tasks], arguments.train, arguments.listed, arguments.valid),
            arguments.simplifications,
            arguments.limit,
        )
    except (MagroundingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    for item, reason in lost.items():
        print(f"left out: {item.task} {item.variation} ({item.split}): {reason}")
    return 0


def wanted(tasks: list[str], train: int, listed: int, valid: int) -> list[Item]:
    """What to collect, in order: the first training variation of each task, the first for validation, and so on."""
    turns = []
    for task in tasks:
        official = variations(task)
        counts = {"train": (train, listed), "valid": (valid, valid)}
        columns = [_drawn(task, split, official[split], *count) for split, count in counts.items()]
        turns.append([item for pair in zip_longest(*columns) for item in pair if item is not None])
    return [item for turn in zip_longest(*turns) for item in turn if item is not None]


def collect(out: Path, items: list[Item], simplifications: str, limit: float) -> dict[Item, str]:
    """Collect what is not in a file yet; what was given up on, and why.

    Args:
        out: the file.
        items: what it shall hold.
        simplifications: see `Simulation.begin`.
        limit: seconds for each.
    """
    mend(out)
    known = {(each.task, each.split, each.variation) for each in read_trajectories(out)} if out.exists() else set()
    lost: dict[Item, str] = {}
    missing = [item for item in items if item[:3] not in known]
    for item in track(missing, "gold paths", console=Console(stderr=True), disable=not missing):
        try:
            java = shared_java(HEAP)
            with _ends_after(limit, java):
                if item.listed:
                    gold, moments = play_gold(java, item.task, item.variation, simplifications)
                else:
                    gold, moments = find_gold(java, item.task, item.variation, simplifications), []
        except SimulatorError as error:
            lost[item] = str(error)
            continue
        append_trajectory(out, trajectory_of(gold, moments, item.task, item.split, item.variation))
    return lost


def _drawn(task: str, split: str, official: range, count: int, listed: int) -> list[Item]:
    order = list(official)
    random.Random(f"{task} {split}").shuffle(order)
    return [Item(task, split, variation, place < listed) for place, variation in enumerate(order[:count])]


@contextlib.contextmanager
def _ends_after(seconds: float, java: Java) -> Iterator[None]:
    """Kill a Java process that takes longer: the caller that waits for its answer gets a SimulatorError."""
    timer = threading.Timer(seconds, os.kill, (java.pid, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


if __name__ == "__main__":
    sys.exit(main())
