"""What takes relread longest, compiled for a CPU: float32 in and out, with gradients written by hand.

`relread` computes the same in a few lines of torch wherever these do not suit, and those lines are the definition.
Kernels run in one thread and release the GIL, as agents learn in threads of their own. Whatever numba compiles here is
in this file, so its cache on disk notices every change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from numba.core import config
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

_LANES = 64
"""So many go through a layer together at most: few enough for the nearest cache."""
_ALONE = 1 << 18
"""Multiplications of a product of matrices above which OpenBLAS wakes its own threads, which agents in threads of their
own must not compete with."""


def suits(*tensors: Tensor) -> bool:
    """Whether these may be given to the functions of this module: float32 on a CPU, without autocast, with a JIT."""
    return (
        not getattr(config, "DISABLE_JIT", 0)
        and not torch.is_autocast_enabled("cpu")
        and all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
    )


def relate(
    mentions: Tensor, alike: Tensor, alone: Tensor, weight: Tensor, document: Tensor, which: Tensor, exists: Tensor
) -> tuple[Tensor, Tensor]:
    """Every thing's bonds with the others, summed, and its relations to what the agent holds.

    The relations of two things are, for each pair of their words, `mentions` both ways and `alike`. Their bond is
    `relu(linear(cat((relations, alone of the one, alone of the other, 1)), weight))`. Where no thing is all is zero.

    Args:
        mentions, alike: [U, P, P].
        alone: [N, M, A].
        weight: [H, 3 W W + 2 A + 1].
        document: [N].
        which: [N, M + 1, W], which of P each word is; what the agent holds comes last.
        exists: [N, M] bool.

    Returns:
        [N, M, H] and [N, M, 3 W W].
    """
    sums, with_held = _Relate.apply(mentions, alike, alone, weight, document, which, exists)
    n, m, _ = alone.shape
    return sums.t().view(n, m, -1), with_held.t().view(n, m, -1)


def look(features: Tensor, weight: Tensor, bias: Tensor, patterns: Tensor, cell: Tensor) -> Tensor:
    """`(linear(features, weight, bias) * patterns[cell]).sum(1)`, of things whose cell is not the last pattern.

    Args:
        features: [N, M, F].
        weight, bias: [H, F] and [H].
        patterns: [cells, H].
        cell: [N, M].
    """
    known, mixing = F.pad(features.flatten(0, 1), (0, 1), value=1.0), torch.cat((weight.t(), bias.unsqueeze(0)))
    return _Look.apply(known, mixing, patterns, cell)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().contiguous().numpy()


class _Relate(Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*tensors)
        mentions, alike, alone, weight, document, which, exists = map(_array, tensors)
        sums = tensors[0].new_zeros(len(weight), exists.size)
        with_held = tensors[0].new_zeros(3 * which.shape[2] ** 2, exists.size)
        _relate(mentions, alike, alone, weight, document, which, exists, sums.numpy(), with_held.numpy())
        return sums, with_held

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor, d_with_held: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = [tensor.new_zeros(tensor.shape) for tensor in ctx.saved_tensors[:4]]
        arrays = map(_array, (d_sums, d_with_held, *ctx.saved_tensors, *gradients))
        _relate_back(*arrays)
        return (*gradients, None, None, None)


@njit(nogil=True)
def _pairs(exists):
    """Of all pairs of things that exist: observation, the one and the other."""
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


@njit(nogil=True)
def _gather(mentions, alike, span, document, which, n, i, k, known, lane):
    """Write the relations of the words of i and k to known[:, lane]; tables [U span span] are flat, for speed."""
    at = 0
    for a in range(which.shape[2]):
        for b in range(which.shape[2]):
            of, to, first = which[n, i, a], which[n, k, b], document[n] * span
            known[at, lane] = mentions[(first + of) * span + to]
            known[at + 1, lane] = mentions[(first + to) * span + of]
            known[at + 2, lane] = alike[(first + of) * span + to]
            at += 3


@njit(nogil=True)
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


@njit(nogil=True)
def _know(mentions, alike, span, alone, document, which, pairs, known):
    """Write what a layer is told of each pair to a column of known [inputs, _LANES]."""
    about, after = alone.shape[2], 3 * which.shape[2] ** 2
    for lane in range(len(pairs)):
        n, i, k = pairs[lane]
        _gather(mentions, alike, span, document, which, n, i, k, known, lane)
        for a in range(about):
            known[after + a, lane] = alone[n, i, a]
            known[after + about + a, lane] = alone[n, k, a]
        known[after + 2 * about, lane] = 1


@njit(cache=True, nogil=True)
def _relate(mentions, alike, alone, weight, document, which, exists, sums, with_held):
    observations, things = exists.shape
    span, mentions, alike = mentions.shape[1], mentions.reshape(-1), alike.reshape(-1)
    pairs = _pairs(exists)
    thing = pairs[:, 0] * things + pairs[:, 1]
    known, bonds = np.zeros((weight.shape[1], _LANES), np.float32), np.empty((len(weight), _LANES), np.float32)
    for start in range(0, len(pairs), _LANES):
        some, of = pairs[start : start + _LANES], thing[start : start + _LANES]
        _know(mentions, alike, span, alone, document, which, some, known)
        np.dot(weight, known, bonds)
        for h in range(len(weight)):
            for lane in range(len(of)):
                sums[h, of[lane]] += max(bonds[h, lane], np.float32(0))
    for n in range(observations):
        for i in range(things):
            if exists[n, i]:
                _gather(mentions, alike, span, document, which, n, i, things, with_held, n * things + i)


@njit(cache=True, nogil=True)
def _relate_back(
    d_sums,
    d_with_held,
    mentions,
    alike,
    alone,
    weight,
    document,
    which,
    exists,
    d_mentions,
    d_alike,
    d_alone,
    d_weight,
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
        _know(mentions, alike, span, alone, document, which, some, known)
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


class _Look(Function):
    @staticmethod
    def forward(ctx: Any, known: Tensor, mixing: Tensor, patterns: Tensor, cell: Tensor) -> Tensor:
        ctx.save_for_backward(known, mixing, patterns, cell)
        hidden = known.new_zeros(len(cell), mixing.shape[1])
        _look(_array(known), _array(mixing), _array(patterns), _array(cell), hidden.numpy())
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        gradients = [tensor.new_zeros(tensor.shape) for tensor in ctx.saved_tensors[:3]]
        known, mixing, patterns, cell, *d_arrays = map(_array, (*ctx.saved_tensors, *gradients))
        order = np.argsort(cell, axis=None, kind="stable")
        _look_back(_array(gradient), order, known, mixing, patterns, cell, *d_arrays)
        return (*gradients, None)


@njit(cache=True, nogil=True)
def _look(known, mixing, patterns, cell, hidden):
    things, cells = cell.shape[1], cell.reshape(-1)
    lanes = max(1, min(_LANES, _ALONE // mixing.size))
    for start in range(0, len(cells), lanes):
        what = np.dot(known[start : start + lanes], mixing)
        for at in range(len(what)):
            n, where = (start + at) // things, cells[start + at]
            if where != len(patterns) - 1:
                for h in range(mixing.shape[1]):
                    hidden[n, h] += what[at, h] * patterns[where, h]


@njit(cache=True, nogil=True)
def _look_back(gradient, order, known, mixing, patterns, cell, d_known, d_mixing, d_patterns):
    """Things of one cell of the map together: the gradient of its what × where, summed, gives those of both."""
    things, cells = cell.shape[1], cell.reshape(-1)
    inputs, width = mixing.shape
    lanes = max(1, min(_LANES, _ALONE // mixing.size))
    product = np.empty_like(mixing)
    start = 0
    while start < len(order) and cells[order[start]] != len(patterns) - 1:
        where, stop = cells[order[start]], start
        while stop < min(len(order), start + lanes) and cells[order[stop]] == where:
            stop += 1
        here, of_here = np.empty((stop - start, inputs), np.float32), np.empty((stop - start, width), np.float32)
        for at in range(stop - start):
            thing = order[start + at]
            n = thing // things
            for f in range(inputs):
                here[at, f] = known[thing, f]
            for h in range(width):
                of_here[at, h] = gradient[n, h]
        for f in range(inputs):
            for h in range(width):
                product[f, h] = mixing[f, h] * patterns[where, h]
        d_here = np.dot(of_here, product.T)
        for at in range(stop - start):
            thing = order[start + at]
            for f in range(inputs):
                d_known[thing, f] = d_here[at, f]
        d_product = np.dot(here.T, of_here)
        for f in range(inputs):
            for h in range(width):
                d_patterns[where, h] += mixing[f, h] * d_product[f, h]
                d_mixing[f, h] += patterns[where, h] * d_product[f, h]
        start = stop
