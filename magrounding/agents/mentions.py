"""Mentions: a memory of the last mention of each pair of words in an episode, and of how often there was one.

Texts name things by more than one word ("drawer 3"), and every room has other things. So the key of an encoding is a
pair of neighbouring words, hashed to one of SLOTS slots of a table. Two pairs may collide.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SLOTS = 2048
"""Slots of a table. A room of ALFWorld has about 150 pairs of words."""

COUNTS = 3
"""Numbers of mentions from this on are not distinguished."""

_DECAY = 0.9
"""Factor on the freshness of a mention in each step after it."""


class Mentions(NamedTuple):
    """Memories of N = T · B observations: T steps of B episodes."""

    place: Tensor  # [T, B, SLOTS] int64, row of `content` with the last mention; 0: none
    content: Tensor  # [K, R], encoding of each mention; row 0 is zeros
    fresh: Tensor  # [T, B, SLOTS], 1 in the step of the mention, then decaying; 0: none
    times: Tensor  # [T, B, SLOTS], steps of the episode with a mention

    def look_up(self, observation: Tensor, keys: Tensor) -> Tensor:
        """Return [P, L, R + 1 + COUNTS] under keys [P, L] of observations [P], indices below N.

        These are content, freshness, and 1 where there were at least 1, 2, … COUNTS mentions, else 0.
        """
        at = observation.unsqueeze(1) * SLOTS + keys
        content, fresh = self.content[self.place.flatten()[at]], self.fresh.flatten()[at]
        often = self.times.flatten()[at].unsqueeze(2) > torch.arange(COUNTS, device=at.device)
        return torch.cat((content, fresh.unsqueeze(2), often), 2)

    def tables(self) -> Tensor:
        """Return the memory after each step, content, freshness and times [T, B, SLOTS, R + 2], without gradients."""
        content = self.content.detach()
        return torch.cat((content[self.place], torch.stack((self.fresh, self.times), 3)), 3)


def pair_keys(ids: Tensor) -> Tensor:
    """Return the key [U, L] int64 of each word of ids [U, L]: the slot of the pair of it and the word before it."""
    words = ids.long()
    before = torch.cat((torch.zeros_like(words[:, :1]), words[:, :-1]), 1)
    mixed = (before * 0x9E3779B1 + words * 0x85EBCA77) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D >> 13) % SLOTS


def mean_by_key(keys: Tensor, mask: Tensor, content: Tensor) -> Tensor:
    """Return the mean [U, L, R] of `content` over a text's words with the same key; 0 where mask [U, L] is false."""
    text = torch.arange(len(keys), device=keys.device).unsqueeze(1)
    codes, which = torch.unique((text * SLOTS + keys)[mask], return_inverse=True)
    total = content.new_zeros(len(codes), content.shape[2]).index_add(0, which, content[mask])
    count = content.new_zeros(len(codes)).index_add(0, which, content.new_ones(len(which)))
    return torch.zeros_like(content).masked_scatter(mask.unsqueeze(2), (total / count.unsqueeze(1))[which])


def follow(memory: Tensor, keys: Tensor, mask: Tensor, content: Tensor, restarts: Tensor) -> Mentions:
    """Update the memory [B, SLOTS, R + 2] over T steps of B episodes, by the words of one text in each step.

    Args:
        memory: before the first step.
        keys, mask: [T, B, L], key of each word, and False for padding.
        content: [T, B, L, R], encoding of each word, equal under equal keys of a text (`mean_by_key`).
        restarts: [T, B] bool, steps that begin an episode, with an empty memory.
    """
    T, B, L = keys.shape
    row = torch.arange(T * B * L, device=keys.device).view(T, B, L) + 1 + B * SLOTS
    row = row.masked_fill(~mask, 0)
    place = torch.arange(B * SLOTS, device=keys.device).view(B, SLOTS) + 1
    fresh, times = memory[..., -2], memory[..., -1]
    places, freshness, counts = [], [], []
    for t, restart in enumerate(restarts.unsqueeze(2)):
        new = torch.zeros_like(place).scatter_reduce(1, keys[t], row[t], "amax")
        place = torch.where(new > 0, new, place.masked_fill(restart, 0))
        fresh = torch.where(new > 0, 1.0, fresh.masked_fill(restart, 0.0) * _DECAY)
        times = times.masked_fill(restart, 0.0) + (new > 0)
        places.append(place)
        freshness.append(fresh)
        counts.append(times)
    empty = content.new_zeros(1, content.shape[3])
    rows = torch.cat((empty, memory[..., :-2].flatten(0, 1).to(content.dtype), content.flatten(0, 2)))
    return Mentions(torch.stack(places), rows, torch.stack(freshness), torch.stack(counts))
