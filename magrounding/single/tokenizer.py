"""Tokenizer: free text of a simulator as ids of a fixed vocabulary, and back; ChoiceTable: ids of valid actions.

A simulator writes any text; an `EnvSpec` names every id beforehand. So a world ships a list of the words that occur in
its texts. A word of the list is one id; any other is spelt, its first letter as itself and each further one with "##"
before it ("zinc" is "z ##i ##n ##c"): no text is lost, no two words look the same, and no list has to be complete. Text
is lower case, split into words (letters and digits) and single other signs; white space only separates.

An env writes its texts by `Tokenizer.row` and its valid actions by `ChoiceTable.rows`; `vocabulary.plain_text` is the
way back, for networks with a tokenizer of their own.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence

import numpy as np

from magrounding.errors import ConfigurationError
from magrounding.vocabulary import CONTINUATION, Vocabulary

UNKNOWN = "<unk>"
"""Token of a sign that is not printable ASCII."""

_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
_LETTERS = string.ascii_lowercase + string.digits


class Tokenizer:
    """Tokenizer with a fixed vocabulary, for any text.

    Attributes:
        vocabulary: the given words and signs, in lower case, then single letters, digits and signs, those that continue
            a word, and UNKNOWN.
        words: the word of each id, for an EnvSpec.
        last: the largest id.
    """

    def __init__(self, words: Iterable[str]) -> None:
        signs = (*_LETTERS, *string.punctuation, *(CONTINUATION + letter for letter in _LETTERS), UNKNOWN)
        self.vocabulary = Vocabulary(dict.fromkeys((*words, *signs)))
        self.words = self.vocabulary.words
        self.last = len(self.words) - 1
        self._ids = {word: (i,) for i, word in enumerate(self.words)}
        self._unknown = self._ids[UNKNOWN]

    def ids(self, text: str) -> list[int]:
        """Return all ids of a text."""
        known, found = self._ids, []
        for word in split(text):
            found += known[word] if word in known else self._spell(word)
        return found

    def row(self, text: str, length: int) -> np.ndarray:
        """Return the ids of a text [length] int16, padded with zeros or cut."""
        return self.fit(text, length)[0]

    def fit(self, text: str, length: int) -> tuple[np.ndarray, int]:
        """Return `row`, and the number of ids that are cut."""
        ids, row = self.ids(text), np.zeros(length, np.int16)
        row[: len(ids)] = ids[:length]
        return row, max(0, len(ids) - length)

    def count(self, text: str) -> int:
        """Return the number of ids of a text."""
        return len(self.ids(text))

    def _spell(self, word: str) -> tuple[int, ...]:
        if word[0] not in self._ids:
            return self._unknown
        first, *others = word
        return self._ids[first] + tuple(self.vocabulary[CONTINUATION + letter] for letter in others)


class ChoiceTable:
    """Cache of the ids of valid actions: the same few thousand texts come up again and again.

    Args:
        tokenizer, max_choices, max_tokens: the world's; C actions of a step have L ids each.
        remembered: texts that the cache holds; when it is full, it is emptied.
    """

    def __init__(self, tokenizer: Tokenizer, max_choices: int, max_tokens: int, remembered: int = 2**15) -> None:
        self.max_choices, self.max_tokens = max_choices, max_tokens
        self._tokenizer = tokenizer
        self._rows = np.zeros((max(remembered, max_choices), max_tokens), np.int16)
        self._cut = np.zeros(len(self._rows), np.int64)
        self._places: dict[str, int] = {}

    def rows(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return `choices` [C, L] int16 and `action_mask` [C] int8; ConfigurationError for more texts than rows."""
        if len(texts) > self.max_choices:
            raise ConfigurationError(f"{len(texts)} texts to choose from, {self.max_choices} rows: raise max_choices")
        choices = np.zeros((self.max_choices, self.max_tokens), np.int16)
        mask = np.zeros(self.max_choices, np.int8)
        choices[: len(texts)] = self._rows[self._find(texts)]
        mask[: len(texts)] = 1
        return choices, mask

    def cut(self, texts: Sequence[str]) -> int:
        """Return the number of ids of these texts that their rows have no room for."""
        return int(self._cut[self._find(texts)].sum())

    def _find(self, texts: Sequence[str]) -> list[int]:
        places = self._places
        try:
            return [places[text] for text in texts]
        except KeyError:
            pass
        new = dict.fromkeys(text for text in texts if text not in places)
        if len(places) + len(new) > len(self._rows):
            places.clear()
            new = dict.fromkeys(texts)
        for text in new:
            self._rows[len(places)], self._cut[len(places)] = self._tokenizer.fit(text, self.max_tokens)
            places[text] = len(places)
        return [places[text] for text in texts]


def split(text: str) -> list[str]:
    """Return the words and signs of a text, in lower case."""
    return _WORD.findall(text.lower())
