"""Mentions: a memory of the last mention of each pair of words in an episode.

Texts name things by more than one word ("drawer 3"), and other ones in every room. So encodings are kept under each two
neighbouring words: a table of SLOTS places, found by hashing. Two pairs may share a place by chance.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SLOTS = 2048
"""Places of a table. A room of ALFWorld has about 150 pairs of words."""

_FADES = 0.9
"""Decay of the freshness of a mention in a step."""


class Mentions(NamedTuple):
    """Memories of N observations, T steps of B episodes."""

    place: Tensor  # [T, B, SLOTS] int64, the row of `content` that is the last mention; 0 where there was none
    content: Tensor  # [K, R] of every mention
    fresh: Tensor  # [T, B, SLOTS], 1 in the step of the mention, then less and less

    def look_up(self, observation: Tensor, keys: Tensor) -> Tensor:
        """Return [P, L, R + 1] under keys [P, L] in observations [P], of N = T · B; freshness comes last."""
        at = observation.unsqueeze(1) * SLOTS + keys
        content = self.content[self.place.flatten()[at]]
        return torch.cat((content, self.fresh.flatten()[at].unsqueeze(2)), 2)

    def tables(self) -> Tensor:
        """Return [T, B, SLOTS, R + 1] without gradients: the memory after each step."""
        content = self.content.detach()
        return torch.cat((content[self.place], self.fresh.unsqueeze(3)), 3)


def pair_keys(ids: Tensor) -> Tensor:
    """Return [U, L] int64, the place of each word of ids [U, L] and the one before it."""
    words = ids.long()
    before = torch.cat((torch.zeros_like(words[:, :1]), words[:, :-1]), 1)
    mixed = (before * 0x9E3779B1 + words * 0x85EBCA77) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D >> 13) % SLOTS


def mean_by_key(keys: Tensor, mask: Tensor, content: Tensor) -> Tensor:
    """Return `content` [U, L, R] where mask [U, L] is true; the mean over a text's words of the same key."""
    text = torch.arange(len(keys), device=keys.device).unsqueeze(1)
    codes, which = torch.unique((text * SLOTS + keys)[mask], return_inverse=True)
    total = content.new_zeros(len(codes), content.shape[2]).index_add(0, which, content[mask])
    count = content.new_zeros(len(codes)).index_add(0, which, content.new_ones(len(which)))
    return torch.zeros_like(content).masked_scatter(mask.unsqueeze(2), (total / count.unsqueeze(1))[which])


def follow(memory: Tensor, keys: Tensor, mask: Tensor, content: Tensor, restarts: Tensor) -> Mentions:
    """Update the memory [B, SLOTS, R + 1] over T steps of B episodes, in each of which a text says something new.

    Args:
        memory: before the first step.
        keys, mask: [T, B, L] of the words, and true for words.
        content: [T, B, L, R] of those, equal under equal keys of a text (`mean_by_key`).
        restarts: [T, B] bool.
    """
    T, B, L = keys.shape
    row = torch.arange(T * B * L, device=keys.device).view(T, B, L) + 1 + B * SLOTS
    row = row.masked_fill(~mask, 0)
    place = torch.arange(B * SLOTS, device=keys.device).view(B, SLOTS) + 1
    fresh = memory[..., -1]
    places, freshness = [], []
    for t, restart in enumerate(restarts.unsqueeze(2)):
        new = torch.zeros_like(place).scatter_reduce(1, keys[t], row[t], "amax")
        place = torch.where(new > 0, new, place.masked_fill(restart, 0))
        fresh = torch.where(new > 0, 1.0, fresh.masked_fill(restart, 0.0) * _FADES)
        places.append(place)
        freshness.append(fresh)
    none = content.new_zeros(1, content.shape[3])
    every = torch.cat((none, memory[..., :-1].flatten(0, 1).to(content.dtype), content.flatten(0, 2)))
    return Mentions(torch.stack(places), every, torch.stack(freshness))
