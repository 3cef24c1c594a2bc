"""Reading: nothing cut, nothing padded into, one terminator."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from magrounding.agents.language import TextEncoder, join_statements
from tests.agents.samples import make_sample


def test_statements_are_joined_without_padding_and_ended_once():
    manual = torch.tensor([[[5, 6, 0], [0, 0, 0], [7, 0, 0]], [[8, 9, 5], [6, 0, 0], [7, 9, 0]]], dtype=torch.int16)
    words = join_statements(manual)
    assert words.ids.tolist() == [[5, 6, 7, 0, 0, 0, 0], [8, 9, 5, 6, 7, 9, 0]]
    assert words.length.tolist() == [4, 7]


def test_a_text_without_words_is_its_terminator():
    words = join_statements(torch.zeros(3, 4, dtype=torch.int16))
    assert words.ids.tolist() == [[0], [0], [0]]
    assert words.length.tolist() == [1, 1, 1]
    states, mask = TextEncoder(5, 3)(torch.nn.Embedding(9, 5, padding_idx=0), words)
    assert states.shape == (3, 1, 6)
    assert mask.all()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_states_are_those_of_packed_sequences(kind):
    torch.manual_seed(0)
    table, encoder = torch.nn.Embedding(40, 5, padding_idx=0), TextEncoder(5, 3, kind)
    network = torch.nn.LSTM if kind == "lstm" else torch.nn.GRU
    reference = network(5, 3, batch_first=True, bidirectional=True)
    back = {f"{name}_reverse": weight for name, weight in encoder.back.state_dict().items()}
    reference.load_state_dict(encoder.ahead.state_dict() | back)
    assert sum(p.numel() for p in reference.parameters()) == sum(p.numel() for p in encoder.parameters())
    words = join_statements(make_sample(1, 6).manual)
    packed = pack_padded_sequence(table(words.ids.int()), words.length, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(reference(packed)[0], batch_first=True)
    states, mask = encoder(table, words)
    torch.testing.assert_close(states[mask], expected[mask], rtol=0, atol=1e-6)
    weight = torch.randn_like(expected[mask])
    got = torch.autograd.grad((states[mask] * weight).sum(), [encoder.ahead.weight_hh_l0, encoder.back.weight_hh_l0])
    wanted = torch.autograd.grad(
        (expected[mask] * weight).sum(), [reference.weight_hh_l0, reference.weight_hh_l0_reverse]
    )
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
