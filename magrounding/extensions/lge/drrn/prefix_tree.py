"""Recurrent networks over many short texts that begin alike: each distinct beginning is computed once.

"pour water in sink" and "pour water in cup" share three of four steps of a GRU that reads from the left. Texts become
the paths of a tree, and the network walks the tree level by level: all beginnings of one length at once. The states are
those that the network has on each text alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from magrounding.jit import cached_njit


class PrefixTree(NamedTuple):
    """Beginnings of U texts; N of them, the shorter ones first, and the empty one is node 0.

    Those of one length are in the order of the longest text that goes on from each.

    Attributes:
        token: [N + 1] int64, the last token of each; −1 of node 0.
        parent: [N + 1] int64, the node without that token.
        leaf: [U] int64, the node of each whole text.
        bounds: [D + 1] int64: those of length d are the nodes from bounds[d − 1] on, up to bounds[d].
    """

    token: np.ndarray
    parent: np.ndarray
    leaf: np.ndarray
    bounds: np.ndarray


def grow_tree(tokens: np.ndarray, start: np.ndarray) -> PrefixTree:
    """Return the tree of concatenated texts.

    Args:
        tokens: [S] int64, 0 or more.
        start: [U + 1] int64, where each text begins, and where the last one ends.
    """
    token, parent = np.full(len(tokens) + 1, -1, np.int64), np.zeros(len(tokens) + 1, np.int64)
    length = np.diff(start)
    order = np.argsort(-length, kind="stable")
    leaf = np.zeros(len(length), np.int64)
    bounds = np.ones(int(length.max(initial=0)) + 1, np.int64)
    size = 1 << max(1, int(2 * len(tokens)).bit_length())
    keys, nodes = np.zeros((size, 2), np.int64), np.zeros(size, np.int64)
    count = _grow(tokens, start, order, token, parent, leaf, bounds, keys, nodes)
    return PrefixTree(token[:count], parent[:count], leaf, bounds)


@cached_njit()
def _grow(tokens, start, order, token, parent, leaf, bounds, keys, nodes):
    """Fill the tree's arrays; keys and nodes are a hash table (parent, token) → node. Returns N + 1."""
    mask, count = len(nodes) - 1, 1
    for depth in range(len(bounds) - 1):
        for u in order:
            if start[u] + depth >= start[u + 1]:
                break
            before, last = leaf[u], tokens[start[u] + depth]
            slot = (before * 40503 + last * 30011) & mask
            while nodes[slot] != 0 and (keys[slot, 0] != before or keys[slot, 1] != last):
                slot = (slot + 1) & mask
            if nodes[slot] == 0:
                keys[slot, 0], keys[slot, 1], nodes[slot] = before, last, count
                token[count], parent[count] = last, before
                count += 1
            leaf[u] = nodes[slot]
        bounds[depth + 1] = count
    return count


class TreeGRU(nn.GRU):
    """A GRU of one layer that reads the texts of a tree; its weights, and what it computes, are those of `nn.GRU`.

    Args:
        width: of a token.
        hidden: units.
    """

    weight_ih_l0: Tensor
    weight_hh_l0: Tensor
    bias_ih_l0: Tensor
    bias_hh_l0: Tensor

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(width, hidden, batch_first=True)

    def read(self, words: nn.Embedding, tokens: np.ndarray, start: np.ndarray) -> Tensor:
        """Return the last states [U, hidden] of concatenated texts, zeros of an empty one; float32 also under autocast.

        Arguments are those of `grow_tree`.
        """
        tree, device = grow_tree(tokens, start), words.weight.device
        known, place = np.unique(tree.token[1:], return_inverse=True)
        with torch.autocast(device.type, enabled=False):
            distinct = words(torch.from_numpy(known).to(device))
            inputs = nn.functional.linear(distinct, self.weight_ih_l0, self.bias_ih_l0)
            return _Walk.apply(inputs, self.weight_hh_l0, self.bias_hh_l0, tree, place)  # type: ignore[no-any-return]


class _Walk(torch.autograd.Function):
    """States of all nodes; autograd by itself would take five times as long, most of it to add up small pieces.

    The backward pass visits only those beginnings whose texts a gradient reaches.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, tree: PrefixTree, place: np.ndarray) -> Tensor:
        """Return the states [U, H] of the leaves; `inputs` [K, 3 H] are the gates' summands of each distinct token."""
        device, width, keep = inputs.device, weight.shape[1], any(ctx.needs_input_grad[:3])
        sizes = np.diff(tree.bounds).tolist()
        # Views of all levels, cut at once: most levels are narrow, and cutting takes as long as computing.
        rows, cuts = (sum(sizes), sizes) if keep else (max(sizes, default=0), [])
        gates, new, passed = (inputs.new_empty(rows, n * width) for n in (2, 1, 1))
        parts = [each.split(cuts) if keep else [each[:n] for n in sizes] for each in (gates, new, passed)]
        states = inputs.new_zeros(len(tree.parent), width)
        parents = torch.from_numpy(tree.parent[1:]).to(device).split(sizes)
        tokens = torch.from_numpy(place).to(device).split(sizes)
        to_gates, to_new = inputs[:, : 2 * width].contiguous(), inputs[:, 2 * width :].contiguous()
        of_gates, of_new, bias_gates, bias_new = (
            *weight.t().split([2 * width, width], 1),
            *bias.split([2 * width, width]),
        )
        to_gates += bias_gates
        for level, (both, candidate, hidden, after) in enumerate(zip(*parts, states[1:].split(sizes), strict=True)):
            before = states.index_select(0, parents[level])
            torch.addmm(to_gates.index_select(0, tokens[level]), before, of_gates, out=both).sigmoid_()
            reset, update = both.split(width, 1)
            torch.addmm(bias_new, before, of_new, out=hidden)
            torch.addcmul(to_new.index_select(0, tokens[level]), reset, hidden, out=candidate).tanh_()
            torch.lerp(candidate, before, update, out=after)
        if keep:
            ctx.save_for_backward(inputs, weight, states, gates, new, passed)
            ctx.tree, ctx.place = tree, place
        return states.index_select(0, torch.from_numpy(tree.leaf).to(device))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of inputs, weight and bias."""
        inputs, weight, states, gates, new, passed = ctx.saved_tensors
        tree, (gradient,), device, width = ctx.tree, gradients, inputs.device, weight.shape[1]
        reached = np.zeros(len(tree.parent), np.bool_)
        _mark(tree.leaf[gradient.ne(0).any(1).cpu().numpy()], tree.parent, reached)
        nodes = np.flatnonzero(reached)  # in the order of the tree, so levels stay together
        if not len(nodes):
            return torch.zeros_like(inputs), torch.zeros_like(weight), weight.new_zeros(len(weight)), None, None
        compact = np.zeros(len(tree.parent), np.int64)
        compact[nodes] = np.arange(1, len(nodes) + 1)
        bounds = 1 + np.searchsorted(nodes, tree.bounds)
        bounds = bounds[: int((np.diff(bounds) > 0).sum()) + 1]
        sizes = np.diff(bounds).tolist()
        parents = torch.from_numpy(compact[tree.parent[nodes]]).to(device).split(sizes)
        at = torch.from_numpy(nodes - 1).to(device)
        before = states.index_select(0, torch.from_numpy(tree.parent[nodes]).to(device))
        reset, update = gates.index_select(0, at).split(width, 1)
        candidate = new.index_select(0, at)
        to_candidate = (1 - update) * (1 - candidate * candidate)
        # What a state's gradient is multiplied by to give those of the three gates, on the side of the state before.
        factors = torch.stack(
            (
                to_candidate * passed.index_select(0, at) * reset * (1 - reset),
                (before - candidate) * update * (1 - update),
                to_candidate * reset,
            ),
            1,
        )
        flowing = gradient.new_zeros(len(nodes) + 1, width)
        flowing.index_add_(0, torch.from_numpy(compact[tree.leaf]).to(device), gradient)
        at_hidden = torch.empty_like(factors)
        parts = [each.split(sizes) for each in (flowing[1:], factors, at_hidden, update.contiguous())]
        for level, (here, factor, to_gates, passing) in reversed(list(enumerate(zip(*parts, strict=True)))):
            torch.mul(here.unsqueeze(1), factor, out=to_gates)
            flowing.index_add_(0, parents[level], torch.addmm(here * passing, to_gates.view(-1, 3 * width), weight))
        to_inputs = at_hidden.clone()
        to_inputs[:, 2] = flowing[1:] * to_candidate
        at_hidden, to_inputs = at_hidden.view(-1, 3 * width), to_inputs.view(-1, 3 * width)
        token = torch.from_numpy(ctx.place[nodes - 1]).to(device)
        of_inputs = torch.zeros_like(inputs).index_add_(0, token, to_inputs)
        return of_inputs, at_hidden.t() @ before, at_hidden.sum(0), None, None


@cached_njit()
def _mark(leaves, parent, reached):
    """Mark all beginnings of some nodes, but the empty one."""
    for node in leaves:
        while node != 0 and not reached[node]:
            reached[node] = True
            node = parent[node]
