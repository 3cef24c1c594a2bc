"""Collects gold paths: `python -m tools.scienceworld.collect_gold --out gold.jsonl`.

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
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track

from magrounding.errors import MagroundingError
from magrounding.output import show_anything
from magrounding.simulators.faults import SimulatorError
from magrounding.single.scienceworld.gold import Gold, find_gold, play_gold
from magrounding.single.scienceworld.java import Java, shared_java
from magrounding.single.scienceworld.options import TASKS, task_name, variations
from magrounding.single.scienceworld.simulation import Moment
from magrounding.single.scienceworld.trajectories import Trajectory, read_trajectories
from magrounding.storage import json_text, user_path

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
        tasks = [task_name(task) for task in arguments.tasks]
        items = planned_items(tasks, arguments.train, arguments.listed, arguments.valid)
        lost = collect(arguments.out, items, arguments.simplifications, arguments.limit)
    except (MagroundingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        return 130
    for item, reason in lost.items():
        print(f"left out: {item.task} {item.variation} ({item.split}): {reason}")
    return 0


def planned_items(tasks: list[str], train: int, listed: int, valid: int) -> list[Item]:
    """Return the items in order: the first training variation of each task, the first for validation, and so on."""
    turns = []
    for task in tasks:
        official = variations(task)
        counts = {"train": (train, listed), "valid": (valid, valid)}
        columns = [_drawn(task, split, official[split], *count) for split, count in counts.items()]
        turns.append([item for pair in zip_longest(*columns) for item in pair if item is not None])
    return [item for turn in zip_longest(*turns) for item in turn if item is not None]


def collect(out: Path, items: list[Item], simplifications: str, limit: float) -> dict[Item, str]:
    """Collect what is not in a file yet; return what was given up on, and why.

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


def trajectory_of(gold: Gold, moments: Sequence[Moment], task: str, split: str, variation: int) -> Trajectory:
    """A gold path as a trajectory; `moments` are those before each of its commands, or none."""
    valid = _spans([set(moment.actions) for moment in moments])
    return Trajectory(task, split, variation, gold.text, gold.commands, gold.meant, gold.score, valid)


def append_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Add a line to a file that `read_trajectories` has read or that is not there yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json_text(asdict(trajectory), compact=True) + "\n")


def mend(path: Path) -> None:
    """Cut off a last line that a kill has left unfinished."""
    if path.is_file():
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            with path.open("r+b") as file:
                file.truncate(whole)


def _drawn(task: str, split: str, official: range, count: int, listed: int) -> list[Item]:
    order = list(official)
    random.Random(f"{task} {split}").shuffle(order)
    return [Item(task, split, variation, place < listed) for place, variation in enumerate(order[:count])]


def _spans(moments: Sequence[set[str]]) -> dict[str, tuple[int, ...]]:
    """Action → the steps in which it was valid, as `Trajectory.valid` has them."""
    spans: dict[str, tuple[int, ...]] = {}
    for action in sorted(set[str]().union(*moments)):
        there = [False, *(action in moment for moment in moments), False]
        spans[action] = tuple(step for step, (before, now) in enumerate(pairwise(there)) if before != now)
    return spans


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
