"""Encoded texts: each distinct one is read once, in a place that is used again, however long the others are."""

import numpy as np
import pytest
import torch

from magrounding.teams import player
from magrounding.teams.player import EncodedTexts
from magrounding.texts import content_keys
from tests.training.text_games import LENGTH, TextPolicy


def sentences(*lengths, word=1):
    """[R, LENGTH], the r-th of `lengths[r]` words; each a text of its own."""
    texts = np.zeros((len(lengths), LENGTH), np.int16)
    for row, length in enumerate(lengths):
        texts[row, :length] = 1 + (row + word) % 9
    return texts


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return TextPolicy()


@pytest.fixture(params=[False, True], ids=["places used again", "kept"])
def keep(request):
    return request.param


def reader_of(policy, keep):
    return EncodedTexts(policy, "message", keep=keep)


@torch.no_grad()
def read(texts, shown):
    """The index of texts [R, LENGTH], after a look at what the encoding holds of them."""
    index = texts.read(content_keys({"message": shown}), {"message": shown})
    expected = texts.policy.words(torch.from_numpy(shown).long())
    states, spoken = texts.encoding["states"][index], texts.encoding["spoken"][index]
    length = min(states.shape[1], LENGTH)
    assert torch.equal(spoken[:, :length], torch.from_numpy(shown != 0)[:, :length])
    assert not spoken[:, length:].any()
    assert int(spoken.sum()) == int((shown != 0).sum())  # nothing of a text is cut off
    for row in range(len(shown)):
        assert torch.equal(states[row][spoken[row]], expected[row][torch.from_numpy(shown[row] != 0)])
    return index


def test_each_distinct_text_is_encoded_once(policy, keep):
    texts, shown = reader_of(policy, keep), sentences(1, 2, 3)
    index = read(texts, shown[[0, 1, 0, 2, 1]])
    assert index.dtype == np.int64
    assert index[0] == index[2] != index[1] == index[4] != index[3]
    assert texts.encoded == 3
    place = {0: index[0], 1: index[1], 2: index[3]}
    for order in ([0, 1, 0, 2, 1], [2, 1, 0, 0, 0], [1, 1, 1, 1, 2]):
        assert read(texts, shown[order]).tolist() == [place[text] for text in order]
    assert texts.encoded == 3


def test_games_read_by_halves_keep_what_the_other_half_shows(policy, keep):
    """As where simulators work while the other half of the games is thought about."""
    texts, shown = reader_of(policy, keep), sentences(1, 2, 3, 4)
    halves = np.arange(0, 2), np.arange(2, 4)

    def read_half(rows, shown):
        return texts.read(content_keys({"message": shown}), {"message": shown}, rows)

    with torch.no_grad():
        for _ in range(3):
            index = np.concatenate([read_half(rows, shown[rows]) for rows in halves])
        assert len(set(index.tolist())) == texts.encoded == 4
        for word in range(5, 9):
            other = sentences(3, 2, word=word)
            read_half(halves[0], other)
            np.testing.assert_array_equal(read_half(halves[1], shown[2:]), index[2:])
    assert texts.encoded == 4 + 2 * 4
    assert keep or len(texts.encoding["states"]) == 4


def test_what_is_kept_has_a_limit(policy, monkeypatch):
    monkeypatch.setattr(player, "KEPT", 5)
    texts = reader_of(policy, keep=True)
    for word in range(8):
        read(texts, sentences(1, 2, 3, word=word))
        assert len(next(iter(texts.encoding.values()))) <= 5 + 3
