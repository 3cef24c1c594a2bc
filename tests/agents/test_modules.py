"""Blocks against formulas written out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from magrounding.agents.modules import (
    DocumentAttention,
    FiLM2,
    SelfAttention,
    distance_map,
    embed_cells,
    layer_widths,
    skips,
    spatial_max,
)


def test_distance_map_is_zero_for_the_dead_and_in_the_own_cell():
    position = torch.tensor([[0, 0], [3, 5], [6, 1], [-1, -1]], dtype=torch.int16)
    got = distance_map(position, 7, 7)
    for n, (row, column) in enumerate(position.tolist()[:3]):
        assert not got[n, :, row, column].any()
        assert got[n, :, 2, 4].tolist() == pytest.approx([(4 - column) / 7, (2 - row) / 7])
    assert not got[3].any()


def test_distance_map_of_an_oblong_grid():
    got = distance_map(torch.tensor([[1, 2]]), 4, 5)
    assert got.shape == (1, 2, 4, 5)
    torch.testing.assert_close(got[0, :, 3, 0], torch.tensor([-2 / 5, 2 / 4]))


def test_cells_are_sums_of_their_words():
    words = torch.nn.Embedding(12, 3, padding_idx=0)
    grid = torch.randint(0, 12, (2, 4, 5, 3), dtype=torch.int16)
    torch.testing.assert_close(embed_cells(words, grid), words(grid.long()).sum(3).permute(0, 3, 1, 2))


def test_self_attention():
    attention = SelfAttention(4)
    states = torch.randn(2, 5, 4)
    mask = torch.arange(5) < torch.tensor([[3], [5]])
    got = attention(states, mask)
    for row, length in zip(range(2), (3, 5), strict=True):
        words = states[row, :length]
        weights = torch.exp(words @ attention.score.weight[0] + attention.score.bias)
        torch.testing.assert_close(got[row], (weights[:, None] * words).sum(0) / weights.sum())


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


def test_tiles_hold_each_observation_once_and_beside_its_document():
    document = torch.randint(0, 9, (300,), generator=torch.Generator().manual_seed(1))
    index = DocumentAttention(torch.zeros(9, 1, 2), torch.ones(9, 1, dtype=torch.bool), document)
    assert index.slot is not None
    assert len(index.slot.unique()) == 300
    torch.testing.assert_close(index.document[index.slot // index.size], document)


@pytest.mark.parametrize("shape", [(6, 6), (4, 7)])
def test_film2_equations(shape):
    torch.manual_seed(0)
    layer = FiLM2(text_width=5, in_channels=4, channels=3, query_width=11)
    x, text = torch.randn(2, 4, *shape), torch.randn(2, 5)
    (w_gamma, w_beta, w_text), (b_gamma, b_beta, b_text) = layer.text.weight.chunk(3), layer.text.bias.chunk(3)
    kernels, biases = layer.conv.weight.chunk(3), layer.conv.bias.chunk(3)
    visual, gate, shift = (F.conv2d(x, k, b, padding=1) for k, b in zip(kernels, biases, strict=True))
    expected = torch.empty(2, 3, *shape)
    for n in range(2):
        gamma, beta, value = w_gamma @ text[n] + b_gamma, w_beta @ text[n] + b_beta, w_text @ text[n] + b_text
        for i in range(shape[0]):
            for j in range(shape[1]):
                v_vis = torch.relu((1 + gamma) * visual[n, :, i, j] + beta)
                v_text = torch.relu((1 + gate[n, :, i, j]) * value + shift[n, :, i, j])
                expected[n, :, i, j] = v_vis + v_text
    got = layer(x, text)
    torch.testing.assert_close(got, expected)
    assert (got >= 0).all()
    torch.testing.assert_close(spatial_max(got), expected.flatten(2).max(2).values)
    assert layer.query(spatial_max(got)).shape == (2, 11)


def test_film2_without_text_modulation_is_film():
    torch.manual_seed(0)
    layer = FiLM2(text_width=5, in_channels=4, channels=3, text_modulation=False)
    assert layer.conv.out_channels == 3  # neither Conv_Γ nor Conv_B
    assert layer.text.out_features == 6
    x, text = torch.randn(2, 4, 6, 6), torch.randn(2, 5)
    gamma, beta = layer.text(text).chunk(2, 1)
    expected = torch.relu((1 + gamma[:, :, None, None]) * layer.conv(x) + beta[:, :, None, None])
    torch.testing.assert_close(layer(x, text), expected)


def test_film2_of_no_text():
    """With x_text = 0 and zero biases of the text maps, V_vis = ReLU(Conv_vis(X)) and V_text = ReLU(B)."""
    layer = FiLM2(text_width=5, in_channels=4, channels=3)
    torch.nn.init.zeros_(layer.text.bias)
    x = torch.randn(2, 4, 6, 6)
    visual, _, shift = layer.conv(x).chunk(3, 1)
    torch.testing.assert_close(layer(x, torch.zeros(2, 5)), torch.relu(visual) + torch.relu(shift))


def test_film2_with_kernels_of_one_cell_permutes_cells_alike():
    layer = FiLM2(text_width=5, in_channels=4, channels=3)
    centre = torch.zeros(3, 3)
    centre[1, 1] = 1
    with torch.no_grad():
        layer.conv.weight *= centre
    x, text = torch.randn(2, 4, 6, 6), torch.randn(2, 5)
    order = torch.randperm(36)
    shuffled = x.flatten(2)[:, :, order].view_as(x)
    torch.testing.assert_close(layer(shuffled, text), layer(x, text).flatten(2)[:, :, order].view(2, 3, 6, 6))


def test_fused_maps_start_as_separate_ones_would():
    """PyTorch's initial bound is 1 / sqrt(fan in), whatever the number of outputs."""
    layer = FiLM2(text_width=260, in_channels=66, channels=64)
    for third in layer.conv.weight.chunk(3):
        assert third.abs().max() <= (66 * 9) ** -0.5
        assert third.abs().max() > 0.99 * (66 * 9) ** -0.5
    for third in layer.text.weight.chunk(3):
        assert third.abs().max() <= 260**-0.5
        assert third.abs().max() > 0.99 * 260**-0.5


def test_layer_widths_and_skip_connection():
    assert layer_widths((16, 32, 64, 64, 64), 30, 2) == [(32, 16), (18, 32), (34, 64), (66, 64), (66, 64)]
    assert skips((16, 32, 64, 64, 64))
    assert skips((8, 8, 16))
    assert not skips((8, 16, 16))
    assert not skips((8, 8))
    assert not skips((8,))
