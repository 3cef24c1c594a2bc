"""Words and their ids. A world has one vocabulary, so a checkpoint fits every stage and split of its world."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from itertools import filterfalse

import numpy as np

from magrounding.errors import ConfigurationError

PAD = 0
PAD_WORD = "<pad>"

CONTINUATION = "##"
"""Token before a letter that continues a word."""


class Vocabulary:
    """An ordered list of words, behind the padding word with id 0; ConfigurationError for one that is listed twice."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words: tuple[str, ...] = (PAD_WORD, *words)
        self._ids = {word: i for i, word in enumerate(self.words)}
        if len(self._ids) != len(self.words):
            twice = next(word for i, word in enumerate(self.words) if self._ids[word] != i)
            raise ConfigurationError(f"a vocabulary lists each word once, got {twice!r} twice")

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._ids

    def __getitem__(self, word: str) -> int:
        """The id of a word; KeyError where the vocabulary lacks it."""
        return self._ids[word]

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the word list: two vocabularies with one hash give every word the same id."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    def encode(self, text: str, length: int | None = None) -> np.ndarray:
        """Ids [length] int16 of a text of space-separated words, padded with zeros; KeyError for an unlisted word."""
        ids = [self._ids[word] for word in text.split()]
        row = np.zeros(length or len(ids), np.int16)
        row[: len(ids)] = ids
        return row

    def decode(self, row: Iterable[int]) -> str:
        """The text of a row of ids, padding dropped."""
        return " ".join(self.words[i] for i in row if i != PAD)


def plain_text(words: Sequence[str], row: Iterable[int]) -> str:
    """Return the text of some ids, given the word of each: lower case, a space between words and signs, no padding."""
    return " ".join(words[i] for i in row if i != PAD).replace(" " + CONTINUATION, "")


@cache
def is_punctuation(word: str) -> bool:
    """Tell whether a stream leaves out a word: one without letter or digit."""
    return not any(map(str.isalnum, word))


def without_punctuation(sentence: str) -> str:
    """A sentence as a stream has it."""
    return " ".join(filterfalse(is_punctuation, sentence.split()))
