"""Ways: a reader of what lies where on a map, and of the ways there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

BANDS = np.array([1, 2, 3, 5, 8, 13, 20], np.int64)
"""Longest ways, in steps, of the bands that ways are sorted into; one band more has all that are longer."""

OUT_OF_REACH = len(BANDS) + 1
"""The band of what no known way leads to."""

SECTORS = 9
"""A sector is where something lies from where the episode began, by the direction in which the agent looked then:
3 · (0 behind, 1 beside, 2 in front) + (0 left, 1 neither, 2 right)."""

_KIN = 8
"""Width of what things send to others that share a word with them."""


class Found(NamedTuple):
    """Things that N steps remember, and how they lie from the agent.

    Attributes:
        maps: [T, B, S · S + 1] float32, the map after each step's view, 0 where nothing was seen, and 1 + the direction
            in which the episode began; None where the world keeps it.
        step: [M] int64, in order, the step of each remembered thing.
        symbol: [M, K] int64, its words.
        region: [M] int64, with which step a shortest known way to it begins, and its length; of a thing out of reach,
            the straight direction.
        unexplored: [N] int64, the region of the nearest cell that was never seen; the number of regions where no known
            way leads to one.
        sector: [M] int64, of SECTORS; None where there are none.
    """

    maps: Tensor | None
    step: Tensor
    symbol: Tensor
    region: Tensor
    unexplored: Tensor
    sector: Tensor | None = None


def find_things(find: Callable[[np.ndarray], int], room: int) -> np.ndarray:
    """Return the things [M, 4] that `find` writes to an array; it is called again if there are more than `room`.

    It returns how many there are, also of those that it had no room for.
    """
    things = np.empty((room, 4), np.int64)
    count = find(things)
    if count > room:
        things = np.empty((count, 4), np.int64)
        find(things)
    return things[:count]


class Ways(nn.Module):
    """Reader of what was found on a map.

    Args:
        vocabulary, planes: of the words of things.
        features, role, hidden: widths of things, of what missions say of them, and of what is added up.
        regions: number of regions.
        related: it knows sectors and words that things share (`locate`, `relate`).
    """

    def __init__(
        self, vocabulary: int, planes: int, features: int, role: int, hidden: int, regions: int, related: bool
    ) -> None:
        super().__init__()
        self.vocabulary, self.regions = vocabulary, regions
        if related:
            self.sectors = nn.Linear(role, SECTORS * features)
            self.sends, self.held_sends = nn.Linear(features, _KIN), nn.Linear(features, _KIN)
            self.receives = nn.Linear(planes * _KIN, features)
        self.sums = nn.Linear(self.regions * features, hidden)
        self.nearest = nn.Embedding(self.regions + 1, hidden)
        self.unexplored = nn.Parameter(torch.randn(features) * 0.3)
        self.query, self.nearness = nn.Linear(hidden, features), nn.Linear(hidden, self.regions + 1)
        self.way, self.what = nn.Linear(self.regions + 1, hidden), nn.Linear(features, hidden)
        with torch.no_grad():
            self.nearest.weight.mul_(0.3)
            for linear in (self.sums, self.way):
                linear.weight.mul_(4)

    def locate(self, found: Found, features: Tensor, summary: Tensor, mission: Tensor) -> Tensor:
        """Add to features [M, F] of things what missions say of their sectors: "the ball behind you".

        Args:
            found: of N steps.
            features: [M, F], of the things by themselves.
            summary, mission: [U, role] of the missions, and [N] which each step has.
        """
        assert found.sector is not None
        by_sector = self.sectors(summary).view(len(summary) * SECTORS, -1)
        return features + F.embedding(mission[found.step] * SECTORS + found.sector, by_sector)

    def relate(self, found: Found, features: Tensor, words: Tensor, held: Tensor) -> Tensor:
        """Add to features [M, F] of things what others send that share a word: a key's colour may be a locked door's.

        Args:
            found: of N steps.
            features: [M, F], of the things by themselves.
            words, held: [N, K] and [N, F], words and features of what the agent's own cell shows.
        """
        things, steps = len(features), len(words)
        step = torch.cat((found.step, torch.arange(steps, device=words.device)))
        words = torch.cat((found.symbol, words))
        sent = torch.cat((self.sends(features), self.held_sends(held))).unsqueeze(1) * (words > 0).unsqueeze(2)
        place = step.unsqueeze(1) * self.vocabulary + words
        received = sent.new_zeros(steps * self.vocabulary, _KIN).index_add(0, place.flatten(), sent.flatten(0, 1))
        others = F.embedding(place[:things], received) - sent[:things]
        return features + F.relu(self.receives(others.flatten(1)))

    def around(self, found: Found, features: Tensor) -> Tensor:
        """Sum up [N, hidden] the features [M, F] of all things by region, and where the nearest unseen place is."""
        steps, width = len(found.unexplored), features.shape[1]
        sums = features.new_zeros(steps * self.regions, width)
        sums = sums.index_add(0, found.step * self.regions + found.region, features)
        return self.sums(sums.view(steps, -1)) + self.nearest(found.unexplored)

    def chosen(self, found: Found, features: Tensor, memory: Tensor) -> Tensor:
        """Attend to one thing, or to the nearest unseen place, by the memory [N, hidden]; the way there [N, hidden]."""
        steps = len(memory)
        step = torch.cat((found.step, torch.arange(steps, device=memory.device)))
        region = torch.cat((found.region, found.unexplored))
        features = torch.cat((features, self.unexplored.expand(steps, -1)))
        place = step * (self.regions + 1) + region
        score = (self.query(memory).index_select(0, step) * features).sum(1)
        score = score + self.nearness(memory).flatten().index_select(0, place)
        most = score.detach().new_zeros(steps).scatter_reduce(0, step, score.detach(), "amax", include_self=False)
        weight = (score - most[step]).exp()
        weight = weight / weight.new_zeros(steps).index_add(0, step, weight)[step]
        ways = weight.new_zeros(steps * (self.regions + 1)).index_add(0, place, weight)
        what = features.new_zeros(steps, features.shape[1]).index_add(0, step, weight.unsqueeze(1) * features)
        return self.way(ways.view(steps, -1)) + self.what(what)
