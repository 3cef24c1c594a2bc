"""How a manual's descriptions lie in rows: one a row, or all in one row as running text."""

from __future__ import annotations

LAYOUTS = ("statements", "paragraph", "stream")
"""One description a row; all in one row, in the order of the rows; the same without punctuation."""
STATEMENTS, PARAGRAPH, STREAM = LAYOUTS


def without_punctuation(sentence: str) -> str:
    """A sentence as a stream has it: words without any letter or digit are left out."""
    return " ".join(word for word in sentence.split() if any(map(str.isalnum, word)))


def layout_shape(layout: str, statements: int, longest: int) -> tuple[int, int]:
    """Rows of a manual and words of a row.

    Args:
        layout: one of LAYOUTS.
        statements: how many descriptions a manual has.
        longest: words of one at most, without punctuation for a stream.
    """
    return (statements, longest) if layout == STATEMENTS else (1, statements * longest)
