"""What chance wins: the probability that a walk at random reaches its goal, computed and not played."""

from __future__ import annotations

import numpy as np

from magrounding.single.touchdown.graph import Graph


def chance_of(graph: Graph, start: int, goal: int, steps: int) -> float:
    """The probability of reaching a goal by uniform choices among open ways.

    Args:
        graph: places and ways.
        start, goal: by number.
        steps: at most.
    """
    area, frontier = {start}, [start]
    while frontier:
        reached = {end for place in frontier for _, _, end in graph.ways[place]} - area
        area |= reached
        frontier = sorted(reached)
    places = sorted(area)
    number = {place: k for k, place in enumerate(places)}
    moves = np.zeros((len(places), len(places)))
    for place in places:
        ends = [end for (_, _, end), ok in zip(graph.ways[place], graph.open_ways(place, goal), strict=True) if ok]
        for end in ends or [place]:
            moves[number[place], number[end]] += 1 / max(1, len(ends))
    if goal not in number:
        return 0.0
    moves[number[goal]] = 0
    moves[number[goal], number[goal]] = 1
    here = np.zeros(len(places))
    here[number[start]] = 1
    for _ in range(steps):
        here = here @ moves
    return float(here[number[goal]])
