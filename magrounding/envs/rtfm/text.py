"""Language: every sentence that a document can hold is written out once, as a row of ids; kernels only pick rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from magrounding.vocabulary import Vocabulary, without_punctuation

LAYOUTS = ("statements", "merged", "paragraph", "stream")
"""One statement a row; two or three; the whole manual in one row; the same without punctuation."""
STATEMENTS, MERGED, PARAGRAPH, STREAM = range(len(LAYOUTS))

COMMA = ","
"""Between the members of a list."""


def fill(template: str, members: Sequence[str], name: str) -> str:
    """The sentence of a template about a list of modifiers or monsters and an element or team."""
    return template.replace("{a}", f" {COMMA} ".join(members)).replace("{A}", name)


def layout_shape(layout: str, lengths: list[int]) -> tuple[int, int]:
    """Rows of a manual and words of a row, by the words of each statement at most, for a stream without punctuation."""
    longest = sorted(lengths, reverse=True)
    if layout == "statements":
        return len(lengths), longest[0]
    if layout == "merged":
        return len(lengths) // 2, sum(longest[: 2 + len(lengths) % 2])
    return 1, sum(longest)


def sentence_table(
    vocabulary: Vocabulary,
    templates: Sequence[str],
    length: int,
    lists: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    stream: bool,
) -> np.ndarray:
    """All sentences of one kind.

    Args:
        vocabulary: of the world.
        templates: T templates.
        length: L, of the longest sentence.
        lists: C lists of modifiers or monsters that a sentence can be about (one empty list for goals).
        names: N elements or teams.
        stream: without punctuation.

    Returns:
        [T, N, C, L] int16.
    """
    sentences = [fill(t, members, name) for t in templates for name in names for members in lists]
    if stream:
        sentences = [without_punctuation(sentence) for sentence in sentences]
    return np.stack([vocabulary.encode(sentence, length) for sentence in sentences]).reshape(
        len(templates), len(names), len(lists), length
    )
