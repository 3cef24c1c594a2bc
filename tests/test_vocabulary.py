"""Words and ids."""

import numpy as np
import pytest

from magrounding.errors import ConfigurationError
from magrounding.vocabulary import PAD, PAD_WORD, Vocabulary

WORDS = ("wolf", "beats", "fire", ".")


def test_ids_follow_the_order_and_zero_is_padding():
    vocabulary = Vocabulary(WORDS)
    assert vocabulary.words == (PAD_WORD, *WORDS)
    assert [vocabulary[word] for word in WORDS] == [1, 2, 3, 4]
    assert vocabulary[PAD_WORD] == PAD == 0
    assert len(vocabulary) == 5
    assert "wolf" in vocabulary
    assert "tiger" not in vocabulary
    with pytest.raises(KeyError):
        vocabulary["tiger"]


def test_decode_undoes_encode():
    vocabulary = Vocabulary(WORDS)
    row = vocabulary.encode("fire beats wolf .", 7)
    assert row.tolist() == [3, 2, 1, 4, 0, 0, 0]
    assert row.dtype == np.int16
    assert vocabulary.decode(row) == "fire beats wolf ."
    assert vocabulary.decode(row.tolist()) == "fire beats wolf ."
    assert vocabulary.encode("fire").tolist() == [3]
    assert vocabulary.decode([]) == vocabulary.decode([0, 0]) == ""


def test_unknown_words_and_repeated_words_are_errors():
    with pytest.raises(KeyError):
        Vocabulary(WORDS).encode("ice beats wolf .")
    with pytest.raises(ConfigurationError):
        Vocabulary(["wolf", "wolf"])
    with pytest.raises(ConfigurationError):
        Vocabulary([PAD_WORD])


def test_the_hash_names_the_list():
    assert Vocabulary(WORDS).hash == Vocabulary(list(WORDS)).hash
    assert len({Vocabulary(words).hash for words in (WORDS, WORDS[::-1], WORDS[:-1], ("wolfbeats", "fire", "."))}) == 4
