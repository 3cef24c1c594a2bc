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
    """The tree of texts that lie behind one another.

    Args:
        tokens: [S] int64, 0 or more.
        start: [U + 1] int64, where each text begins, and where the last one ends.
    """
    token, parent = np.full(len(tokens) + 1, -1, np.int64), np.zeros(len(tokens) + 1, np.int64)
    leaf = np.zeros(len(start) - 1, np.int64)
    bounds = np.ones(int(np.diff(start).max(initial=0)) + 1, np.int64)
    size = 1 << max(1, int(2 * len(tokens)).bit_length())
    count = _grow(tokens, start, token, parent, leaf, bounds, np.zeros((size, 2), np.int64), np.zeros(size, np.int64))
    return PrefixTree(token[:count], parent[:count], leaf, bounds)


@cached_njit()
def _grow(tokens, start, token, parent, leaf, bounds, keys, nodes):
    """Fill the tree's arrays; keys and nodes are a hash table (parent, token) → node. Returns N + 1."""
    mask, count = len(nodes) - 1, 1
    for depth in range(len(bounds) - 1):
        for u in range(len(leaf)):
            if start[u] + depth >= start[u + 1]:
                continue
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

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(width, hidden, batch_first=True)

    def read(self, words: nn.Embedding, tree: PrefixTree) -> Tensor:
        """The last states [U, hidden] of U texts, zeros of an empty one; float32 also under autocast."""
        device = words.weight.device
        known, place = np.unique(tree.token[1:], return_inverse=True)
        with torch.autocast(device.type, enabled=False):
            distinct = words(torch.from_numpy(known).to(device))
            inputs = nn.functional.linear(distinct, self.weight_ih_l0, self.bias_ih_l0)
            return _Walk.apply(inputs, self.weight_hh_l0, self.bias_hh_l0, tree, place)  # type: ignore[no-any-return]


class _Walk(torch.autograd.Function):
    """The states of all nodes; autograd by itself would take five times as long, most of it to add up small pieces.

    Backwards it visits only those beginnings whose texts a gradient reaches.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor, tree: PrefixTree, place: np.ndarray) -> Tensor:
        """States [U, H] of the leaves, from what each distinct token [K, 3 H] adds to the gates."""
        device, width = inputs.device, weight.shape[1]
        keep = any(ctx.needs_input_grad[:3])
        parent = torch.from_numpy(tree.parent).to(device)
        token = torch.from_numpy(place).to(device)
        bounds = tree.bounds.tolist()
        widest = int(np.diff(tree.bounds).max(initial=0))
        rows = len(tree.parent) if keep else widest
        states = inputs.new_zeros(len(tree.parent), width)
        gates, new, passed = inputs.new_empty(rows, 2 * width), *inputs.new_empty(2, rows, width)
        transposed = weight.t()
        for first, last in zip(bounds, bounds[1:], strict=False):
            here = slice(first, last) if keep else slice(0, last - first)
            before = states.index_select(0, parent[first:last])
            given = inputs.index_select(0, token[first - 1 : last - 1])
            hidden = torch.addmm(bias, before, transposed)
            both = torch.add(given[:, : 2 * width], hidden[:, : 2 * width], out=gates[here]).sigmoid_()
            passed[here] = hidden[:, 2 * width :]
            candidate = torch.addcmul(given[:, 2 * width :], both[:, :width], passed[here], out=new[here]).tanh_()
            torch.lerp(candidate, before, both[:, width:], out=states[first:last])
        if keep:
            ctx.save_for_backward(inputs, weight, states, gates, new, passed)
            ctx.tree, ctx.place = tree, place
        return states.index_select(0, torch.from_numpy(tree.leaf).to(device))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of inputs, weight and bias."""
        inputs, weight, states, gates, new, passed = ctx.saved_tensors
        tree, place, (gradient,) = ctx.tree, ctx.place, gradients
        device, width = inputs.device, weight.shape[1]
        reached = gradient.ne(0).any(1).cpu().numpy()
        wanted = np.zeros(len(tree.parent), np.bool_)
        _mark(tree.leaf[reached], tree.parent, wanted)
        nodes = np.flatnonzero(wanted)  # in the order of the tree, so levels stay together
        if not len(nodes):
            return torch.zeros_like(inputs), torch.zeros_like(weight), weight.new_zeros(len(weight)), None, None
        compact = np.zeros(len(tree.parent), np.int64)
        compact[nodes] = np.arange(1, len(nodes) + 1)
        parent = torch.from_numpy(compact[tree.parent[nodes]]).to(device)
        bounds = (1 + np.searchsorted(nodes, tree.bounds)).tolist()
        at = torch.from_numpy(nodes).to(device)
        before = states.index_select(0, torch.from_numpy(tree.parent[nodes]).to(device))
        both, candidate = gates.index_select(0, at), new.index_select(0, at)
        reset, update = both[:, :width], both[:, width:]
        to_candidate = (1 - update) * (1 - candidate * candidate)
        # What a state's gradient is multiplied by to give those of the three gates.
        factors = torch.cat(
            (
                to_candidate * passed.index_select(0, at) * reset * (1 - reset),
                (before - candidate) * update * (1 - update),
                to_candidate,
            ),
            1,
        ).view(-1, 3, width)
        flowing = gradient.new_zeros(len(nodes) + 1, width)
        flowing.index_add_(0, torch.from_numpy(compact[tree.leaf]).to(device), gradient)
        at_hidden = gradient.new_empty(len(nodes), 3, width)
        for first, last in zip(reversed(bounds[:-1]), reversed(bounds[1:]), strict=True):
            if first == last:
                continue
            here, rows = flowing[first:last], slice(first - 1, last - 1)
            to_gates = torch.mul(here.unsqueeze(1), factors[rows], out=at_hidden[rows])
            to_gates[:, 2].mul_(reset[rows])
            back = torch.addmm(here * update[rows], to_gates.view(-1, 3 * width), weight)
            flowing.index_add_(0, parent[rows], back)
        to_inputs = at_hidden.clone()
        to_inputs[:, 2] = flowing[1:] * to_candidate
        at_hidden, to_inputs = at_hidden.view(-1, 3 * width), to_inputs.view(-1, 3 * width)
        token = torch.from_numpy(place[nodes - 1]).to(device)
        return (
            torch.zeros_like(inputs).index_add_(0, token, to_inputs),
            at_hidden.t() @ before,
            at_hidden.sum(0),
            None,
            None,
        )


@cached_njit()
def _mark(leaves, parent, wanted):
    """Mark all beginnings of some nodes, but the empty one."""
    for node in leaves:
        while node != 0 and not wanted[node]:
            wanted[node] = True
            node = parent[node]
