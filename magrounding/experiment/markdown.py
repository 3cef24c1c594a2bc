"""Tables of reports, and strings of a person's within them: what was typed is what is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_PLAIN = re.compile(r"[^\W_](?:[\w .,:;()/%+=@'’?–×·-]*[\w).%?'’])?")
"""What Markdown shows as it is."""
_OUTER_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
"""One that is not within a word, and may begin or end what is emphasised."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar or a new line within a cell ends no cell."""
    body = [[_cell(each) for each in row] for row in (heads, ["---"] * len(heads), *rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def shown(text: str) -> str:
    """A string of a person's, such as a name, as Markdown that shows it as it is, in one line.

    What Markdown could take for something else is set as `code`.
    """
    return text if _PLAIN.fullmatch(text) and not _OUTER_UNDERSCORE.search(text) else code(text)


def code(text: str) -> str:
    """A string as it is, in one line, set as code."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())  # a lone surrogate cannot be written
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _cell(text: str) -> str:
    return " ".join(text.splitlines()).replace("|", "\\|")
