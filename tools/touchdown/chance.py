"""The probability that a random walk reaches its goal, computed and not played."""

from __future__ import annotations

from collections import defaultdict

from magrounding.single.touchdown.city import Graph

_ANYWHERE = -1


def chance_of(graph: Graph, start: int, goal: int, steps: int, turns_back: bool = True) -> float:
    """The probability of reaching a goal by uniform choices among open ways.

    Args:
        graph: places and ways.
        start, goal: by number.
        steps: at most.
        turns_back: False: the way just come by is taken only where there is no other. Who walks on like that wins
            several times as often, and a walker who follows a wrong instruction walks on like that.
    """
    if start == goal:
        return 1.0
    arrived, here = 0.0, {(start, _ANYWHERE): 1.0}  # (place, the one before) → probability
    ways: dict[int, list[int]] = {}
    for _ in range(steps):
        after: defaultdict[tuple[int, int], float] = defaultdict(float)
        for (place, before), probability in here.items():
            if place not in ways:
                opened = zip(graph.ways[place], graph.open_ways(place, goal), strict=True)
                ways[place] = [end for (_, _, end), is_open in opened if is_open] or [place]
            ends = [end for end in ways[place] if end != before] or ways[place]
            for end in ends:
                if end == goal:
                    arrived += probability / len(ends)
                else:
                    after[end, _ANYWHERE if turns_back else place] += probability / len(ends)
        here = after
    return arrived
