"""Blocks against formulas written out."""

from __future__ import annotations

import pytest
import torch

from magrounding.agents.modules import (
    DocumentAttention,
    distance_map,
)


def test_distance_map_is_zero_for_the_dead_and_in_the_own_cell():
    position = torch.tensor([[0, 0], [3, 5], [6, 1], [-1, -1]], dtype=torch.int16)
    got = distance_map(position, 7, 7)
    for n, (row, column) in enumerate(position.tolist()[:3]):
        assert not got[n, :, row, column].any()
        assert got[n, :, 2, 4].tolist() == pytest.approx([(4 - column) / 7, (2 - row) / 7])
    assert not got[3].any()


@pytest.mark.parametrize(
    "document",
    [
        torch.randint(0, 5, (200,), generator=torch.Generator().manual_seed(0)),
        torch.full((70,), 3),
        torch.tensor([4] * 61 + [1]),
        torch.arange(5),
        torch.tensor([2]),
        torch.tensor([0, 0, 4, 2, 0, 3, 1, 1, 0, 0]),
    ],
)
def test_attention_by_tiles_is_attention_by_copies(document):
    torch.manual_seed(0)
    states = torch.randn(5, 7, 6, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([[3], [7], [1], [5], [7]])
    queries = torch.randn(len(document), 6, requires_grad=True)
    ask = DocumentAttention(states, mask, document)
    got = ask(queries)
    scores = torch.einsum("nld,nd->nl", states[document], queries).masked_fill(~mask[document], -torch.inf)
    expected = torch.einsum("nl,nld->nd", scores.softmax(1), states[document])
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ask(2 * queries), DocumentAttention(states, mask, document)(2 * queries))
    weight = torch.randn_like(got)
    got_gradients = torch.autograd.grad((got * weight).sum(), (states, queries))
    expected_gradients = torch.autograd.grad((expected * weight).sum(), (states, queries))
    for a, b in zip(got_gradients, expected_gradients, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
