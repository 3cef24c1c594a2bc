"""The command that makes a city: `python -m tools.touchdown.generate --out FOLDER`.

It writes the same files as Touchdown has, in one folder; the option `data=FOLDER` of the environment plays them. The
areas of training, validation and tests have no street in common. The city of the package is `--seed 0 --pack`.
"""

from __future__ import annotations

import argparse
import sys
from collections import deque
from pathlib import Path

import numpy as np

from magrounding.errors import MagroundingError
from magrounding.output import show_anything
from magrounding.single.tokenizer import split
from magrounding.single.touchdown.files import Link, Node, Route, Vocabulary
from magrounding.single.touchdown.layout import CLASSES, SPLITS
from magrounding.storage import user_path
from magrounding.vector import check_count
from tools.touchdown.instructions import instruction, words_of_phrases
from tools.touchdown.scene import City, draw_city, draw_panorama
from tools.touchdown.writing import require_empty, write_city

SIZES = {"train": (7, 7), "valid": (5, 5), "test": (5, 5)}
"""Rows and columns of junctions in each area."""
COUNTS = {"train": 1600, "valid": 150, "test": 300}
"""Routes."""
SHORTEST, LONGEST = 6, 20
"""Links of a route."""
_APART = 2000.0
_METRES_A_DEGREE = 111_320.0
_LATITUDE, _LONGITUDE = 40.0, -70.0
"""At sea."""
_TRIES = 60


def make_city(folder: Path, seed: int, routes: dict[str, int], areas: int = 2, pack: bool = False) -> None:
    """Draw a city and write its files.

    Args:
        folder: that is not there yet.
        seed: what is drawn.
        routes: how many of each split, at least 1.
        areas: for training, at least 1.
        pack: compress the routes.

    Raises:
        CheckpointError: the folder has files.
        ConfigurationError: a negative seed, no area, or a split without routes.
    """
    check_count("seed", seed, 0)
    check_count("areas", areas, 1)
    for name, count in routes.items():
        check_count(name, count, 1)
    require_empty(folder)
    nodes: list[Node] = []
    links: list[Link] = []
    views: list[np.ndarray] = []
    written: dict[str, list[Route]] = {file: [] for file in SPLITS.values()}
    plan = [("train", number) for number in range(areas)] + [("valid", 0), ("test", 0)]
    for place, (name, number) in enumerate(plan):
        rng = np.random.default_rng([seed, place])
        city = draw_city(rng, *SIZES[name], x=place * _APART)
        names = [f"{name}{number}_{k:03d}" for k in range(len(city.x))]
        yaws = rng.integers(0, 360, len(names)).astype(float)
        nodes += [_node(city, k, names[k], float(yaws[k])) for k in range(len(names))]
        links += [
            Link(names[a], round(city.heading(a, b), 2), names[b]) for a, ends in enumerate(city.links) for b in ends
        ]
        views += [draw_panorama(city, k, float(yaws[k])) for k in range(len(names))]
        count = len(range(number, routes[name], areas if name == "train" else 1))
        written[SPLITS[name]] += _draw_routes(city, names, count, rng)
    longest = max(len(split(route.instruction)) for each in written.values() for route in each)
    words = Vocabulary(tuple(sorted(words_of_phrases() | set(CLASSES))), longest)
    write_city(folder, nodes, links, written, np.stack(views), words, pack)


def _node(city: City, place: int, name: str, yaw: float) -> Node:
    east = _METRES_A_DEGREE * np.cos(np.radians(_LATITUDE))
    return Node(name, yaw, _LATITUDE + city.y[place] / _METRES_A_DEGREE, _LONGITUDE + city.x[place] / east)


def _draw_routes(city: City, names: list[str], count: int, rng: np.random.Generator) -> list[Route]:
    """Shortest walks between places, no two with the same start and goal, each with a turn, and distinguishable."""
    routes: list[Route] = []
    known: set[tuple[int, int]] = set()
    for _ in range(count * _TRIES):
        if len(routes) == count:
            break
        start, goal = (int(each) for each in rng.integers(len(names), size=2))
        walk = _walk(city, start, goal, rng)
        if not SHORTEST < len(walk) <= LONGEST + 1 or (start, goal) in known:
            continue
        text = instruction(city, walk, rng)
        if text is not None:
            known.add((start, goal))
            ways = city.links[start]
            heading = city.heading(start, ways[int(rng.integers(len(ways)))])
            routes.append(Route(tuple(names[k] for k in walk), text, round(heading, 2)))
    return routes


def _walk(city: City, start: int, goal: int, rng: np.random.Generator) -> list[int]:
    """One of the shortest walks, both ends included."""
    far = {goal: 0}
    queue = deque([goal])
    while queue:
        place = queue.popleft()
        for end in city.links[place]:
            if end not in far:
                far[end] = far[place] + 1
                queue.append(end)
    walk = [start]
    while walk[-1] != goal:
        nearer = [end for end in city.links[walk[-1]] if far[end] < far[walk[-1]]]
        walk.append(nearer[int(rng.integers(len(nearer)))])
    return walk


def main(arguments: list[str] | None = None) -> int:
    """Make a city as the command line says."""
    show_anything()
    parser = argparse.ArgumentParser(prog="python -m tools.touchdown.generate", description=__doc__)
    parser.add_argument("--out", type=user_path, required=True, help="folder to write to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", type=int, default=2, help="areas of streets for training")
    parser.add_argument("--pack", action="store_true", help="compress the routes")
    for name, count in COUNTS.items():
        parser.add_argument(f"--{name}", type=int, default=count, help=f"routes for {name}")
    chosen = parser.parse_args(arguments)
    try:
        make_city(chosen.out, chosen.seed, {name: getattr(chosen, name) for name in COUNTS}, chosen.areas, chosen.pack)
    except (MagroundingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"a city is in {chosen.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
