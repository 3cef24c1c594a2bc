"""Docstrings as Markdown: sections become bold headings, simple tables become tables of Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

_SECTION = re.compile(r"^([A-Z][\w' ]*):$")
_CODE = re.compile(r"(`+[^`]*`+)")


def markdown(docstring: str, but: tuple[str, ...] = ()) -> str:
    """The docstring below its first line, in Markdown, without the sections named in `but`."""
    _, _, body = inspect.cleandoc(docstring).partition("\n")
    return "\n\n".join(
        f"**{title}**\n\n{_block(lines)}" if title else _block(lines)
        for title, lines in _sections(body.splitlines())
        if title not in but and any(lines)
    )


def summary(docstring: str) -> str:
    """The first line of a docstring."""
    return _plain(inspect.cleandoc(docstring).partition("\n")[0])


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """(Title, lines without indentation) of each section; what stands between sections has no title."""
    title, found = "", []
    for line in lines:
        match = _SECTION.match(line)
        if match or (title and line and not line.startswith(" ")):
            yield title, found
            title, found = match[1] if match else "", [] if match else [line]
        else:
            found.append(line.removeprefix("    ") if title else line)
    yield title, found


def _block(lines: list[str]) -> str:
    """Lines as Markdown, with each simple table of reStructuredText as one of Markdown."""
    written: list[str] = []
    rest = iter(lines)
    for line in rest:
        if re.fullmatch(r"=+( +=+)+", line):
            rows: list[str] = []
            while not (row := next(rest)).startswith("="):
                rows.append(row)
            written += ["", *_table(line, rows), ""]
        else:
            written.append(_plain(line))
    return "\n".join(written).strip()


def _table(rule: str, rows: list[str]) -> list[str]:
    """A table without a head, whose columns lie under the signs of `rule`; a row that begins with blanks goes on."""
    spans = [match.span() for match in re.finditer("=+", rule)]
    ends = [*(begin for begin, _ in spans[1:]), None]
    cells: list[list[str]] = []
    for row in rows:
        parts = [row[begin:end].strip() for (begin, _), end in zip(spans, ends, strict=True)]
        if parts[0]:
            cells.append(parts)
        else:
            cells[-1] = [" ".join(filter(None, pair)) for pair in zip(cells[-1], parts, strict=True)]
    head = ["field", "shape", "content"] if len(spans) == 3 else [""] * len(spans)
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(spans)}",
        *(f"| {' | '.join(_plain(part).replace('|', chr(92) + '|') for part in each)} |" for each in cells),
    ]


def _plain(line: str) -> str:
    """The line with what Markdown would take for HTML escaped, outside of code."""
    return "".join(part if part.startswith("`") else part.replace("<", r"\<") for part in _CODE.split(line))
