"""What surrounds the convolutions of FiLM² layers, compiled for a CPU, with gradients written by hand.

`modules` computes the same in a few lines of torch elsewhere, and those lines are the definition. Kernels run in one
thread and release the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import types
from numba.core import config
from numba.extending import intrinsic
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from magrounding.jit import cached_njit

# NaN and infinity stay what they are: a run that diverges has to be seen.
_FAST = {"reassoc", "contract", "nsz", "arcp"}

MOST = 128
"""Channels of a layer, at most."""


def suits(tensor: Tensor) -> bool:
    """Return True if these kernels can take a tensor: on a CPU, with a JIT."""
    return tensor.is_cpu and not getattr(config, "DISABLE_JIT", 0)


def attend(states: Tensor, mask: Tensor, document: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
    """Dot-product attention of queries [N, D] to the states [U, L, D] of their documents [N], see `modules.attend`.

    Returns:
        sums of states [N, D], and the weights [N, L].
    """
    return _Attend.apply(states, mask, document, queries.float())


def modulate(maps: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """FiLM² of convolutions [N, 3C, H, W] (C ≤ 128) by linear maps of text [N, 3C], see `modules.FiLM2`.

    Returns:
        V [N, C, H, W], and its maxima over cells [N, C]; float32 or bfloat16, as the convolutions are.
    """
    return _Modulate.apply(maps, words.float())


def as_array(tensor: Tensor) -> np.ndarray:
    """The memory of a tensor on the CPU, or a copy of it without gaps."""
    return tensor.detach().contiguous().numpy()


def _rows(maps: Tensor) -> np.ndarray:
    """[N, C, H, W] as [N, H · W, C], of bfloat16 its bits; the same memory where channels lie last in it."""
    rows = maps.detach().permute(0, 2, 3, 1).contiguous().flatten(1, 2)
    return rows.view(torch.uint16).numpy() if maps.dtype == torch.bfloat16 else rows.numpy()


class _Attend(Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, mask: Tensor, document: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        found, weights = torch.empty_like(queries), queries.new_zeros(len(queries), states.shape[1])
        _attend(*map(as_array, (states, mask, document, queries)), found.numpy(), weights.numpy())
        ctx.save_for_backward(states, mask, document, queries, weights)
        return found, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        states, queries = ctx.saved_tensors[0], ctx.saved_tensors[3]
        d_states, d_queries = torch.zeros_like(states), torch.zeros_like(queries)
        given = map(as_array, (*ctx.saved_tensors, *gradients))
        _attend_back(*given, d_states.numpy(), d_queries.numpy())
        return d_states, None, None, d_queries


class _Modulate(Function):
    @staticmethod
    def forward(ctx: Any, maps: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        n, wide, height, width = maps.shape
        out = maps.new_empty(n, height, width, wide // 3).permute(0, 3, 1, 2)
        top, where = words.new_empty(n, wide // 3), torch.empty(n, wide // 3, dtype=torch.int32)
        _modulate(_rows(maps), as_array(words), _rows(out), top.numpy(), where.numpy())
        ctx.save_for_backward(maps, words, where)
        return out, top

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        maps, words, where = ctx.saved_tensors
        d_maps, d_words = torch.empty_like(maps, memory_format=torch.channels_last), torch.empty_like(words)
        given = _rows(maps), as_array(words), where.numpy(), _rows(gradients[0]), as_array(gradients[1])
        _modulate_back(*given, _rows(d_maps), d_words.numpy())
        return d_maps, d_words


def _widen(context: Any, number: Any) -> Any:
    """A float32, or the bits of a bfloat16, as float32."""

    def build(context, builder, signature, arguments):
        if number == types.float32:
            return arguments[0]
        bits = builder.zext(arguments[0], context.get_value_type(types.uint32))
        bits = builder.shl(bits, context.get_constant(types.uint32, 16))
        return builder.bitcast(bits, context.get_value_type(types.float32))

    return types.float32(number), build


def _like(context: Any, number: Any, like: Any) -> Any:
    """A float32 as it is, or the bits of the nearest bfloat16, ties to even: as `like` is."""

    def build(context, builder, signature, arguments):
        if like == types.float32:
            return arguments[0]
        one, half, sixteen = (context.get_constant(types.uint32, each) for each in (1, 0x7FFF, 16))
        bits = builder.bitcast(arguments[0], context.get_value_type(types.uint32))
        odd = builder.and_(builder.lshr(bits, sixteen), one)
        rounded = builder.add(builder.add(bits, odd), half)
        return builder.trunc(builder.lshr(rounded, sixteen), context.get_value_type(types.uint16))

    return like(number, like), build


_wide: Any = intrinsic(_widen)
_narrow: Any = intrinsic(_like)


@cached_njit(nogil=True, fastmath=_FAST, error_model="numpy")
def _attend(states, mask, document, queries, found, weights):
    length, width = states.shape[1:]
    for n in range(len(document)):
        u, most, total = document[n], np.float32(-np.inf), np.float32(0.0)
        for w in range(length):
            if mask[u, w]:
                score = np.float32(0.0)
                for c in range(width):
                    score += states[u, w, c] * queries[n, c]
                weights[n, w] = score
                most = score if not score <= most else most
        for w in range(length):
            if mask[u, w]:
                weights[n, w] = np.exp(weights[n, w] - most)
                total += weights[n, w]
        found[n] = np.float32(0.0)
        for w in range(length):
            weights[n, w] = weights[n, w] / total if total > 0 else np.float32(0.0)  # nothing is written
            for c in range(width):
                found[n, c] += weights[n, w] * states[u, w, c]


@cached_njit(nogil=True, fastmath=_FAST, error_model="numpy")
def _attend_back(states, mask, document, queries, weights, d_found, d_weights, d_states, d_queries):
    length, width = states.shape[1:]
    pull = np.empty(length, np.float32)
    for n in range(len(document)):
        u, mean = document[n], np.float32(0.0)
        for w in range(length):
            if mask[u, w]:
                score = d_weights[n, w]
                for c in range(width):
                    score += states[u, w, c] * d_found[n, c]
                pull[w] = score
                mean += score * weights[n, w]
        for w in range(length):
            if mask[u, w]:
                share = weights[n, w]
                slope = share * (pull[w] - mean)
                for c in range(width):
                    d_queries[n, c] += slope * states[u, w, c]
                    d_states[u, w, c] += slope * queries[n, c] + share * d_found[n, c]


@cached_njit(nogil=True, fastmath=_FAST, error_model="numpy")
def _modulate(maps, words, out, top, where):
    cells, channels = out.shape[1:]
    zero, one = np.float32(0.0), np.float32(1.0)
    k = np.empty((9, MOST), np.float32)  # rows at known distances: loops over them are vectorised
    for n in range(len(out)):
        for c in range(channels):
            for j in range(3):
                k[j, c] = words[n, j * channels + c]
            k[6, c], k[7, c] = -one, zero
        for s in range(cells):
            for j in range(3):
                for c in range(channels):
                    k[3 + j, c] = _wide(maps[n, s, j * channels + c])
            for c in range(channels):
                a = k[1, c] + (one + k[0, c]) * k[3, c]
                b = k[5, c] + (one + k[4, c]) * k[2, c]
                now = (zero if a < zero else a) + (zero if b < zero else b)
                more = not now <= k[6, c]
                k[6, c] = now if more else k[6, c]
                k[7, c] = np.float32(s) if more else k[7, c]
                k[8, c] = now
            for c in range(channels):
                out[n, s, c] = _narrow(k[8, c], out[n, s, c])
        for c in range(channels):
            top[n, c], where[n, c] = k[6, c], np.int32(k[7, c])


@cached_njit(nogil=True, fastmath=_FAST, error_model="numpy")
def _modulate_back(maps, words, where, d_out, d_top, d_maps, d_words):
    cells, channels = d_out.shape[1:]
    zero, one = np.float32(0.0), np.float32(1.0)
    k = np.empty((15, MOST), np.float32)
    for n in range(len(d_out)):
        for c in range(channels):
            for j in range(3):
                k[j, c], k[9 + j, c] = words[n, j * channels + c], zero
            k[7, c], k[8, c] = np.float32(where[n, c]), d_top[n, c]
        for s in range(cells):
            for j in range(3):
                for c in range(channels):
                    k[3 + j, c] = _wide(maps[n, s, j * channels + c])
            for c in range(channels):
                k[6, c] = _wide(d_out[n, s, c])
            for c in range(channels):
                up = k[6, c] + (k[8, c] if k[7, c] == np.float32(s) else zero)
                a = up if k[1, c] + (one + k[0, c]) * k[3, c] > zero else zero
                b = up if k[5, c] + (one + k[4, c]) * k[2, c] > zero else zero
                k[9, c] += a * k[3, c]
                k[10, c] += a
                k[11, c] += b * (one + k[4, c])
                k[12, c], k[13, c], k[14, c] = a * (one + k[0, c]), b * k[2, c], b
            for j in range(3):
                for c in range(channels):
                    d_maps[n, s, j * channels + c] = _narrow(k[12 + j, c], d_maps[n, s, c])
        for j in range(3):
            for c in range(channels):
                d_words[n, j * channels + c] = k[9 + j, c]
