"""Free text as ids and back."""

import string

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magrounding.errors import ConfigurationError
from magrounding.single.tokenizer import ChoiceTable, Tokenizer, split
from magrounding.vocabulary import plain_text

TOKENIZER = Tokenizer(["look", "at", "the", "cup", "10"])


def test_a_listed_word_is_one_id_and_others_are_spelt():
    row = TOKENIZER.row("Look at\n\tthe zinc cup (10, 12)", 16)
    words = [TOKENIZER.words[i] for i in row]
    assert words == "look at the z ##i ##n ##c cup ( 10 , 1 ##2 ) <pad> <pad>".split()
    assert plain_text(TOKENIZER.words, row) == "look at the zinc cup ( 10 , 12 )"


@given(st.text(string.printable, max_size=60))
def test_no_text_is_lost(text):
    row = TOKENIZER.row(text, 80)
    assert plain_text(TOKENIZER.words, row) == " ".join(split(text))
    assert TOKENIZER.count(text) == np.count_nonzero(row)


@given(st.text(max_size=40))
def test_any_text_is_written(text):
    row = TOKENIZER.row(text, 10)
    assert row.dtype == np.int16
    assert 0 <= row.min() <= row.max() <= TOKENIZER.last


def test_choices_are_rows_in_their_order():
    table = ChoiceTable(TOKENIZER, 4, 3)
    choices, mask = table.rows(["look at the cup", "cup", "look"])
    assert [plain_text(TOKENIZER.words, row) for row in choices] == ["look at the", "cup", "look", ""]
    assert mask.tolist() == [1, 1, 1, 0]
    again, _ = table.rows(["cup"])
    again[:] = 7  # the caller's own
    assert plain_text(TOKENIZER.words, table.rows(["cup"])[0][0]) == "cup"
    with pytest.raises(ConfigurationError):
        table.rows(["cup"] * 5)
