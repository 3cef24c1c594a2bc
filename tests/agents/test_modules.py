"""Blocks against formulas written out."""

from __future__ import annotations

import pytest
import torch

from magrounding.agents import kernels
from magrounding.agents.modules import DocumentAttention, FiLM2, distance_map, spatial_max


def test_distance_map_is_zero_for_the_dead_and_in_the_own_cell():
    position = torch.tensor([[0, 0], [3, 5], [6, 1], [-1, -1]], dtype=torch.int16)
    got = distance_map(position, 7, 7)
    for n, (row, column) in enumerate(position.tolist()[:3]):
        assert not got[n, :, row, column].any()
        assert got[n, :, 2, 4].tolist() == pytest.approx([(4 - column) / 7, (2 - row) / 7])
    assert not got[3].any()


@pytest.fixture(params=["kernels", "torch"])
def compiled(request, monkeypatch):
    monkeypatch.setattr(kernels, "suits", lambda tensor: request.param == "kernels")


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
def test_attention_to_documents_is_attention_to_copies(document, compiled):
    torch.manual_seed(0)
    states = torch.randn(5, 7, 6, requires_grad=True)
    mask = torch.arange(7) < torch.tensor([[3], [7], [1], [5], [7]])
    queries = torch.randn(len(document), 6, requires_grad=True)
    ask = DocumentAttention(states, mask, document)
    got = ask(queries)
    scores = torch.einsum("nld,nd->nl", states[document], queries).masked_fill(~mask[document], -torch.inf)
    expected = torch.einsum("nl,nld->nd", scores.softmax(1), states[document])
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ask.weights[0], scores.softmax(1), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(ask(2 * queries), DocumentAttention(states, mask, document)(2 * queries))
    weight, share = torch.randn_like(got), torch.randn(len(document), 7)
    got_gradients = torch.autograd.grad((got * weight).sum() + (ask.weights[0] * share).sum(), (states, queries))
    expected = (expected * weight).sum() + (scores.softmax(1) * share).sum()
    for a, b in zip(got_gradients, torch.autograd.grad(expected, (states, queries)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bf16", [False, True])
def test_a_layer_is_two_modulations_and_a_maximum(bf16):
    torch.manual_seed(0)
    layer = FiLM2(5, 4, 6)
    given = torch.randn(3, 4, 4, 5, requires_grad=True), torch.randn(3, 5, requires_grad=True)
    up, top_up = torch.randn(3, 6, 4, 5), torch.randn(3, 6)
    found = []
    for summed in (True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            maps, top = layer.summed(*given) if summed else (layer(*given), spatial_max(layer(*given)))
        loss = (maps * up).sum() + (top * top_up).sum()
        found.append([maps, top, *torch.autograd.grad(loss, [*given, *layer.parameters()])])
    for got, expected in zip(*found, strict=True):
        error = (got - expected).float().abs().max() / expected.float().abs().max()
        assert error < (0.02 if bf16 else 1e-5)
