"""Layouts of a manual's statements: one a row, two or three a row, or all in one row as running text."""

from __future__ import annotations

LAYOUTS = ("statements", "merged", "paragraph", "stream")
"""One statement a row; two or three; the whole manual in one row; the same without punctuation."""
STATEMENTS, MERGED, PARAGRAPH, STREAM = range(len(LAYOUTS))

PUNCTUATION = (",", ".", "?")
"""The words that a stream leaves out."""


def layout_shape(layout: str, lengths: list[int]) -> tuple[int, int]:
    """Rows of a manual and words of a row.

    Args:
        layout: one of LAYOUTS.
        lengths: words of each statement at most, without punctuation for a stream.
    """
    longest = sorted(lengths, reverse=True)
    if layout == "statements":
        return len(lengths), longest[0]
    if layout == "merged":
        return len(lengths) // 2, sum(longest[: 2 + len(lengths) % 2])
    return 1, sum(longest)
