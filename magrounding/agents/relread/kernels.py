"""The slowest parts of relread, compiled for a CPU: ids and float32 in and out, with gradients written by hand.

`relread` computes the same in a few lines of torch elsewhere, and those lines are the definition. Kernels run in one
thread and release the GIL, as agents learn in threads of their own. All that numba compiles here is in this file, so
its cache on disk notices every change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba.core import config
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from magrounding.agents.kernels import as_array
from magrounding.jit import cached_njit, inner_njit

_LANES = 64
"""Pairs, or things, in one product with the weights of a layer: few enough for the L1 cache."""


def suits(*tensors: Tensor) -> bool:
    """Return True if these kernels can take tensors: on a CPU, floats of 32 bits, with a JIT and without autocast."""
    if getattr(config, "DISABLE_JIT", 0) or torch.is_autocast_enabled("cpu"):
        return False
    for tensor in tensors:  # a loop, as this is asked several times in every step
        if not tensor.is_cpu or (tensor.dtype != torch.float32 and tensor.is_floating_point()):
            return False
    return True


def find(
    grid: Tensor, mates: Tensor, held: Tensor, no_entity: Tensor, width: int
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the fields of `Things`, from grid [N, H, W, K], mates [N, n - 1, 2 + I] and held [N, I].

    An occupant of a cell has `width` words; where `no_entity` [V] bool is true for the first, it is no entity.
    """
    occupants = grid.flatten(1, 2).contiguous().numpy()
    most = _most(occupants, no_entity.numpy(), width)
    n, m = len(grid), most + mates.shape[1]
    words = torch.zeros(n, m + 1, width, dtype=torch.int32)
    row, column = torch.zeros(n, m, dtype=torch.int64), torch.zeros(n, m, dtype=torch.int64)
    exists, is_ally = torch.zeros(n, m, dtype=torch.bool), torch.zeros(n, m, dtype=torch.bool)
    into = [tensor.numpy() for tensor in (words, row, column, exists, is_ally)]
    _find(occupants, grid.shape[2], mates.numpy(), held.numpy(), no_entity.numpy(), most, *into)
    return words, row, column, exists, is_ally


def distinct(words: Tensor, vocabulary_size: int) -> tuple[Tensor, Tensor]:
    """Return the distinct ids [P] int64 of `words` [...], in order, and the index of each [...] int64."""
    which = torch.empty(words.shape, dtype=torch.int64)
    ids = _distinct(words.contiguous().view(-1).numpy(), vocabulary_size, which.view(-1).numpy())
    return torch.from_numpy(ids), which


def relate(
    mentions: Tensor, alike: Tensor, alone: Tensor, weight: Tensor, document: Tensor, which: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the sum of each thing's pair features [N, M, H], and its relations to the inventory [N, M, 3 W W].

    The relations of two things are, for each pair of their words, `mentions` both ways and `alike`. The pair features
    of things i and k are `relu(linear(cat((relations, alone[i], alone[k], 1)), weight))`, summed over all k but i.
    Things that do not exist have zeros.

    Args:
        mentions, alike: [U, P, P], see `WordRelations`.
        alone: [N, M, A], features of each thing by itself.
        weight: [H, 3 W W + 2 A + 1].
        document: [N], which of the U documents.
        which: [N, M + 1, W], index of each word among P; the inventory comes last.
        exists: [N, M] bool.
    """
    sums, with_held = _Relate.apply(mentions, alike, alone, weight, document, which, exists)
    n, m, _ = alone.shape
    return sums.t().view(n, m, -1), with_held.t().view(n, m, -1)


def look(base: Tensor, known: Tensor, mixing: Tensor, patterns: Tensor, near: Tensor, place: Tensor) -> Tensor:
    """Apply a layer to a map, given the few things on it: `base + ((known @ mixing) * patterns[cell]).sum(1)`.

    Things whose cell is the last one are left out: they do not exist. C cells near the agent have weights of their own:
    a thing on the k-th of them adds `known @ near[k]`.

    Args:
        base: [N, H], written over.
        known: [N, M, F], features of each thing.
        mixing, patterns, near: [F, H], [cells, H] and [C, F, H].
        place: [N, M, 2], cell of each thing, and k (-1: it is on none of the C cells).
    """
    return _Look.apply(base, known.flatten(0, 1), mixing, patterns, near, place)


def place_around(row: Tensor, column: Tensor, exists: Tensor, position: Tensor, reach: int, around: Tensor) -> Tensor:
    """Return the cell of the egocentric map [N, M, 2] of every thing and its index in `around`; see `Relread.place`."""
    place = torch.empty(*row.shape, 2, dtype=torch.int64)
    arrays = (tensor.numpy() for tensor in (row, column, exists, position, around, place))
    _place(reach, *arrays)
    return place


@cached_njit(nogil=True)
def _most(occupants, no_entity, width):
    """Largest number of entities in an observation, at least 1."""
    most = 1
    for n in range(len(occupants)):
        count = 0
        for cell in range(occupants.shape[1]):
            for first in range(0, occupants.shape[2], width):
                count += not no_entity[occupants[n, cell, first]]
        most = max(most, count)
    return most


@cached_njit(nogil=True)
def _find(occupants, columns, mates, held, no_entity, most, words, row, column, exists, is_ally):
    width = words.shape[2]
    for n in range(len(occupants)):
        slot = 0
        for cell in range(occupants.shape[1]):
            for first in range(0, occupants.shape[2], width):
                if not no_entity[occupants[n, cell, first]]:
                    for w in range(width):
                        words[n, slot, w] = occupants[n, cell, first + w]
                    row[n, slot], column[n, slot] = cell // columns, cell % columns
                    exists[n, slot] = True
                    slot += 1
        for mate in range(mates.shape[1]):
            slot = most + mate
            for w in range(min(width, mates.shape[2] - 2)):
                words[n, slot, w] = mates[n, mate, 2 + w]
            row[n, slot], column[n, slot] = max(mates[n, mate, 0], 0), max(mates[n, mate, 1], 0)
            exists[n, slot], is_ally[n, slot] = mates[n, mate, 0] >= 0, True
        for w in range(min(width, held.shape[1])):
            words[n, -1, w] = held[n, w]


@cached_njit(nogil=True)
def _distinct(words, vocabulary_size, which):
    place = np.full(vocabulary_size, -1)
    for word in words:
        place[word] = 0
    ids = np.flatnonzero(place == 0)
    for p in range(len(ids)):
        place[ids[p]] = p
    for i in range(len(words)):
        which[i] = place[words[i]]
    return ids


class _Relate(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*tensors)
        mentions, alike, alone, weight, document, which, exists = map(as_array, tensors)
        sums = tensors[0].new_zeros(len(weight), exists.size)
        with_held = tensors[0].new_zeros(3 * which.shape[2] ** 2, exists.size)
        _relate(mentions, alike, alone, weight, document, which, exists, sums.numpy(), with_held.numpy())
        return sums, with_held

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor, d_with_held: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = [tensor.new_zeros(tensor.shape) for tensor in ctx.saved_tensors[:4]]
        arrays = map(as_array, (d_sums, d_with_held, *ctx.saved_tensors, *gradients))
        _relate_back(*arrays)
        return (*gradients, None, None, None)


@inner_njit
def _pairs(exists):
    """Rows (observation, thing, other thing) of all ordered pairs of things that exist."""
    observations, things = exists.shape
    pairs = np.empty((observations * things * things, 3), np.int64)
    count = 0
    for n in range(observations):
        for k in range(things):
            for i in range(things):
                if exists[n, i] and exists[n, k] and i != k:
                    pairs[count, 0], pairs[count, 1], pairs[count, 2] = n, i, k
                    count += 1
    return pairs[:count]


@inner_njit
def _gather(mentions, alike, span, document, which, n, i, k, known, lane):
    """Write the relations of the words of i and k to known[:, lane]; the tables [U span span] are flat, for speed."""
    at = 0
    for a in range(which.shape[2]):
        for b in range(which.shape[2]):
            of, to, first = which[n, i, a], which[n, k, b], document[n] * span
            known[at, lane] = mentions[(first + of) * span + to]
            known[at + 1, lane] = mentions[(first + to) * span + of]
            known[at + 2, lane] = alike[(first + of) * span + to]
            at += 3


@inner_njit
def _scatter(d_mentions, d_alike, span, document, which, n, i, k, d_known, lane):
    """The gradient of `_gather`."""
    at = 0
    for a in range(which.shape[2]):
        for b in range(which.shape[2]):
            of, to, first = which[n, i, a], which[n, k, b], document[n] * span
            d_mentions[(first + of) * span + to] += d_known[at, lane]
            d_mentions[(first + to) * span + of] += d_known[at + 1, lane]
            d_alike[(first + of) * span + to] += d_known[at + 2, lane]
            at += 3


@inner_njit
def _pair_inputs(mentions, alike, span, alone, document, which, pairs, known):
    """Write the inputs of the layer to known [inputs, _LANES], one column for each pair."""
    about, after = alone.shape[2], 3 * which.shape[2] ** 2
    for lane in range(len(pairs)):
        n, i, k = pairs[lane]
        _gather(mentions, alike, span, document, which, n, i, k, known, lane)
        for a in range(about):
            known[after + a, lane] = alone[n, i, a]
            known[after + about + a, lane] = alone[n, k, a]
        known[after + 2 * about, lane] = 1


@cached_njit(nogil=True)
def _relate(mentions, alike, alone, weight, document, which, exists, sums, with_held):
    observations, things = exists.shape
    span, mentions, alike = mentions.shape[1], mentions.reshape(-1), alike.reshape(-1)
    pairs = _pairs(exists)
    thing = pairs[:, 0] * things + pairs[:, 1]
    known, bonds = np.zeros((weight.shape[1], _LANES), np.float32), np.empty((len(weight), _LANES), np.float32)
    for start in range(0, len(pairs), _LANES):
        some, of = pairs[start : start + _LANES], thing[start : start + _LANES]
        _pair_inputs(mentions, alike, span, alone, document, which, some, known)
        np.dot(weight, known, bonds)
        for h in range(len(weight)):
            for lane in range(len(of)):
                sums[h, of[lane]] += max(bonds[h, lane], np.float32(0))
    for n in range(observations):
        for i in range(things):
            if exists[n, i]:
                _gather(mentions, alike, span, document, which, n, i, things, with_held, n * things + i)


@cached_njit(nogil=True)
def _relate_back(
    d_sums, d_with_held, mentions, alike, alone, weight, document, which, exists, d_mentions, d_alike, d_alone, d_weight
):
    observations, things = exists.shape
    span, mentions, alike = mentions.shape[1], mentions.reshape(-1), alike.reshape(-1)
    d_mentions, d_alike = d_mentions.reshape(-1), d_alike.reshape(-1)
    about, after = alone.shape[2], 3 * which.shape[2] ** 2
    pairs = _pairs(exists)
    thing = pairs[:, 0] * things + pairs[:, 1]
    known, bonds = np.zeros((weight.shape[1], _LANES), np.float32), np.empty((len(weight), _LANES), np.float32)
    d_known = np.empty_like(known)
    for start in range(0, len(pairs), _LANES):
        some, of = pairs[start : start + _LANES], thing[start : start + _LANES]
        _pair_inputs(mentions, alike, span, alone, document, which, some, known)
        np.dot(weight, known, bonds)
        for h in range(len(weight)):
            for lane in range(len(of)):
                bonds[h, lane] = d_sums[h, of[lane]] * np.float32(bonds[h, lane] > 0)
            bonds[h, len(of) :] = 0
        d_weight += np.dot(bonds, known.T)
        np.dot(weight.T, bonds, d_known)
        for lane in range(len(some)):
            n, i, k = some[lane]
            _scatter(d_mentions, d_alike, span, document, which, n, i, k, d_known, lane)
            for a in range(about):
                d_alone[n, i, a] += d_known[after + a, lane]
                d_alone[n, k, a] += d_known[after + about + a, lane]
    for n in range(observations):
        for i in range(things):
            if exists[n, i]:
                _scatter(d_mentions, d_alike, span, document, which, n, i, things, d_with_held, n * things + i)


@cached_njit(nogil=True)
def _place(reach, row, column, exists, position, around, place):
    side = 2 * reach + 1
    for n in range(row.shape[0]):
        for i in range(row.shape[1]):
            down = min(max(row[n, i] - position[n, 0], -reach), reach) + reach
            right = min(max(column[n, i] - position[n, 1], -reach), reach) + reach
            place[n, i, 0] = down * side + right if exists[n, i] else side * side
            place[n, i, 1] = -1
            for k in range(len(around)):
                if place[n, i, 0] == around[k]:
                    place[n, i, 1] = k


class _Look(Function):
    @staticmethod
    def forward(ctx: Any, base: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        ctx.mark_dirty(base)
        _look(*map(as_array, tensors), base.detach().numpy())  # pyright: ignore[reportCallIssue]
        return base

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = [tensor.new_zeros(tensor.shape) for tensor in ctx.saved_tensors[:4]]
        _look_back(as_array(gradient), *map(as_array, (*ctx.saved_tensors, *gradients)))
        return (gradient, *gradients, None)


@inner_njit
def _existing(place, nowhere):
    """Indices of the things that exist."""
    some, count = np.empty(place.shape[0] * place.shape[1], np.int64), 0
    for thing in range(len(some)):
        if place[thing // place.shape[1], thing % place.shape[1], 0] != nowhere:
            some[count] = thing
            count += 1
    return some[:count]


@inner_njit
def _on_each(place, cells):
    """Indices of things sorted by k, their cell near the agent, and the offset [cells + 1] of the first of each k."""
    order, begins = np.empty(place.shape[0] * place.shape[1], np.int64), np.zeros(cells + 1, np.int64)
    for k in range(cells):
        begins[k + 1] = begins[k]
        for thing in range(len(order)):
            if place[thing // place.shape[1], thing % place.shape[1], 1] == k:
                order[begins[k + 1]] = thing
                begins[k + 1] += 1
    return order, begins


@inner_njit
def _rows(source, which):
    """source[which], contiguous."""
    rows = np.empty((len(which), source.shape[1]), np.float32)
    for at in range(len(which)):
        _copy(rows[at], source[which[at]])
    return rows


@inner_njit
def _copy(into, row):
    """into[:] = row, without the check of shapes, whose error message takes numba a second to compile."""
    for h in range(len(into)):
        into[h] = row[h]


@inner_njit
def _add(into, row):
    """into += row, see `_copy`."""
    for h in range(len(into)):
        into[h] += row[h]


@inner_njit
def _add_rows(into, rows):
    for at in range(len(into)):
        _add(into[at], rows[at])


@inner_njit
def _add_product(into, one, other):
    """into += one * other, of rows; a loop so short that the compiler vectorises it."""
    for h in range(len(into)):
        into[h] += one[h] * other[h]


@inner_njit
def _multiply_back(gradient, one, other, d_one, d_other):
    """The gradients of one * other, of rows: `d_one` is written over, `d_other` added to."""
    for h in range(len(gradient)):
        d_other[h] += one[h] * gradient[h]
        d_one[h] = other[h] * gradient[h]


@cached_njit(nogil=True)
def _look(known, mixing, patterns, near, place, hidden):
    things = place.shape[1]
    exist = _existing(place, len(patterns) - 1)
    for start in range(0, len(exist), _LANES):
        some = exist[start : start + _LANES]
        what = np.dot(_rows(known, some), mixing)
        for at in range(len(some)):
            n, i = divmod(some[at], things)
            _add_product(hidden[n], what[at], patterns[place[n, i, 0]])
    order, begins = _on_each(place, len(near))
    for k in range(len(near)):
        for start in range(begins[k], begins[k + 1], _LANES):
            some = order[start : min(start + _LANES, begins[k + 1])]
            what = np.dot(_rows(known, some), near[k])
            for at in range(len(some)):
                _add(hidden[some[at] // things], what[at])


@cached_njit(nogil=True)
def _look_back(gradient, known, mixing, patterns, near, place, d_known, d_mixing, d_patterns, d_near):
    things = place.shape[1]
    exist = _existing(place, len(patterns) - 1)
    for start in range(0, len(exist), _LANES):
        some = exist[start : start + _LANES]
        here = _rows(known, some)
        what = np.dot(here, mixing)
        of_what = np.empty_like(what)
        for at in range(len(some)):
            n, i = divmod(some[at], things)
            cell = place[n, i, 0]
            _multiply_back(gradient[n], what[at], patterns[cell], of_what[at], d_patterns[cell])
        d_here = np.dot(of_what, mixing.T)
        for at in range(len(some)):
            _copy(d_known[some[at]], d_here[at])
        _add_rows(d_mixing, np.dot(here.T, of_what))
    order, begins = _on_each(place, len(near))
    for k in range(len(near)):
        for start in range(begins[k], begins[k + 1], _LANES):
            some = order[start : min(start + _LANES, begins[k + 1])]
            of_some = _rows(gradient, some // things)
            _add_rows(d_near[k], np.dot(_rows(known, some).T, of_some))
            d_here = np.dot(of_some, near[k].T)
            for at in range(len(some)):
                _add(d_known[some[at]], d_here[at])
