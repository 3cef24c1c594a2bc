"""Assumptions about language that readers of edges can be trained with, as texts beside those of training.

`english`: general English about who beats what and who belongs to whom, `example:english.json`; the world itself
writes the manuals of training games with these sentences. The others are made-up texts.

A made-up text is a plain manual as running text, in which statements of the same kind (of the same classes of words)
are written two by two, but not one after the other. Its words are those of the plain manual, and some unknown ones
between; labels are those of the plain manual, as for any other rendering.

`parallel`: lists beside lists are written in the order of their partners. The sentence of the first statement lists,
wherever it lists words of a class, its own and then those of the second.

`override`: what is said of a word last holds, and a statement about some overrides one about all. The longest list of
the first statement is that of both, mixed; the second follows at once, and says what holds of its own.
"""

from __future__ import annotations

import numpy as np

from magrounding.errors import check_choice

PARALLEL, OVERRIDE = MADE_UP = ("parallel", "override")
ENGLISH = "english"
ASSUMPTIONS = (*MADE_UP, ENGLISH)
SHARE = 0.15
"""Part of the training texts that are made up, for each of MADE_UP."""
_MOST_UNKNOWN = 3
"""Most unknown words between two statements of which the second overrides the first."""


def parse_assumptions(text: str) -> tuple[str, ...]:
    """Parse names of assumptions: "none", or names joined by + or commas.

    Raises:
        ConfigurationError: an unknown name.
    """
    if text in ("none", ""):
        return ()
    named = {
        check_choice("assumption about language", name.strip(), ASSUMPTIONS)
        for name in text.replace(",", "+").split("+")
    }
    return tuple(name for name in ASSUMPTIONS if name in named)


def made_up(assumption: str, rows: np.ndarray, letters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a plain manual [T] as running text, with rows [S, L] of the same classes of words [V] in pairs."""
    waiting: dict[tuple[int, ...], np.ndarray] = {}
    parts: list[np.ndarray] = []
    for row in (row[row != 0] for row in rows[rng.permutation(len(rows))] if row.any()):
        kinds = tuple(np.unique(letters[row]).tolist())
        if kinds not in waiting:
            waiting[kinds] = row
        elif assumption == PARALLEL:
            parts.append(_in_parallel(waiting.pop(kinds), row, letters, rng.random() < 0.5))
        else:
            parts.append(_overridden(waiting.pop(kinds), row, letters, rng))
    parts += list(waiting.values())
    return np.concatenate([parts[k] for k in rng.permutation(len(parts))]).astype(np.int64)


def _in_parallel(first: np.ndarray, second: np.ndarray, letters: np.ndarray, linked: bool) -> np.ndarray:
    """Two statements [T] as one, list beside list; `linked`: with a word between the lists."""
    parts, done, spans = [], 0, {}
    for letter in np.unique(letters[first][letters[first] > 0]):
        start, end = _span(first, letters, letter)
        others = slice(*_span(second, letters, letter))
        spans[start] = end, second[others]
    for end, others in (spans[start] for start in sorted(spans)):
        parts += [first[done:end], np.zeros(int(linked), first.dtype), others]
        done = end
    return np.concatenate([*parts, first[done:]])


def _overridden(first: np.ndarray, second: np.ndarray, letters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A statement [T] about the subjects of both, and then the second, both without some of their function words."""
    letter = int(np.bincount(letters[first][letters[first] > 0]).argmax())
    start, end = _span(first, letters, letter)
    every = np.concatenate((first[start:end], _unknown(rng, 1), second[slice(*_span(second, letters, letter))]))
    listed = np.flatnonzero(letters[every] == letter)
    every[listed] = every[rng.permutation(listed)]
    whole = np.concatenate((first[:start], _unknown(rng, 2), every, first[end:]))
    second = np.concatenate((_unknown(rng, _MOST_UNKNOWN), second))
    return np.concatenate([_worn(part, letters, rng) for part in (whole, second)])


def _worn(words: np.ndarray, letters: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Words [T] with some function words left out, and others unknown."""
    function = letters[words] == 0
    words = np.where(function & (rng.random(len(words)) < rng.random() * rng.integers(2)), 0, words)
    return words[~function | (rng.random(len(words)) > rng.random() * rng.integers(2))]


def _span(row: np.ndarray, letters: np.ndarray, letter: int) -> tuple[int, int]:
    """First place of a class in a row, and that behind its last."""
    places = np.flatnonzero(letters[row] == letter)
    return int(places[0]), int(places[-1]) + 1


def _unknown(rng: np.random.Generator, most: int) -> np.ndarray:
    """Up to so many unknown words."""
    return np.zeros(rng.integers(most + 1), np.int64)
