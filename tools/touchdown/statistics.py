"""Statistics of a city's files, and a check whether they are Touchdown's: `python -m tools.touchdown.statistics`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.output import show_anything
from magrounding.single.tokenizer import split as words_of
from magrounding.single.touchdown import files
from magrounding.single.touchdown.city import FAR, Graph
from magrounding.single.touchdown.layout import LIMIT, SPLITS

PUBLIC = {"nodes": 29_641, "links": 61_319, "least": 1, "most": 5}
"""Statistics of Touchdown's graph as it was published."""


@dataclass(frozen=True)
class Statistics:
    """Statistics of a graph.

    Attributes:
        nodes, links: how many.
        least, most: ways from a place.
    """

    nodes: int
    links: int
    least: int
    most: int


def graph_statistics(folder: Path) -> Statistics:
    """Compute the statistics of `nodes.txt` and `links.txt`; ConfigurationError for files that are no graph."""
    nodes, links = files.read_nodes(folder / files.NODES), files.read_links(folder / files.LINKS)
    degrees = [len(ways) for ways in Graph(nodes, links).ways]
    return Statistics(len(nodes), len(links), min(degrees), max(degrees))


def check_public_graph(folder: Path) -> Statistics:
    """The statistics of a folder; ConfigurationError where they are not those of the published graph."""
    found = graph_statistics(folder)
    for name, expected in PUBLIC.items():
        if getattr(found, name) != expected:
            raise ConfigurationError(f"the graph has {name} {getattr(found, name)}, Touchdown's has {expected}")
    return found


def route_statistics(folder: Path) -> dict[str, dict[str, float]]:
    """Split → routes, their mean number of places and of words, and how many can be walked within the limit."""
    graph = Graph(files.read_nodes(folder / files.NODES), files.read_links(folder / files.LINKS))
    found = {}
    for name, file in SPLITS.items():
        routes = files.read_routes(folder / file)
        ends = [(graph.number(route.nodes[0]), graph.number(route.nodes[-1])) for route in routes]
        far = [int(graph.distances(goal)[start]) for start, goal in ends]
        found[name] = {
            "routes": len(routes),
            "places": sum(len(route.nodes) for route in routes) / len(routes),
            "words": sum(len(words_of(route.instruction)) for route in routes) / len(routes),
            "reachable": sum(each < FAR for each in far),
            "within the limit": sum(each <= LIMIT for each in far),
        }
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print what a folder holds."""
    show_anything()
    parser = argparse.ArgumentParser(prog="python -m tools.touchdown.statistics", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=files.SHIPPED)
    parser.add_argument("--public", action="store_true", help="fail unless it is Touchdown's published graph")
    chosen = parser.parse_args(arguments)
    try:
        found = check_public_graph(chosen.folder) if chosen.public else graph_statistics(chosen.folder)
        print(", ".join(f"{name} {value}" for name, value in asdict(found).items()))
        for name, numbers in route_statistics(chosen.folder).items():
            print(f"{name}: " + ", ".join(f"{what} {value:g}" for what, value in numbers.items()))
        nodes = files.read_nodes(chosen.folder / files.NODES)
        ways = Graph(nodes, files.read_links(chosen.folder / files.LINKS)).ways
        degrees = Counter(map(len, ways))
        print("ways from a place: " + ", ".join(f"{count} × {degree}" for degree, count in sorted(degrees.items())))
    except (MagroundingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
