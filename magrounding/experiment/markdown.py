"""Tables of reports, and strings of a person's within them: what was typed is what is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

_SPECIAL = re.compile(
    r"[`*\[~]"  # code, emphasis, links, what is struck out
    r"|\\(?=[!-/:-@\[-`{-~])"  # a backslash before what it would take away
    r"|(?<![^\W_])_(?=\S)"  # the beginning of emphasis: within a word none begins
    r"|(?<!\w)\$(?=\S)"  # likewise of a formula
)


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
"""Ends of lines, and what terminals obey instead of showing it."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar or a new line within a cell ends no cell, and one without content has a dash."""
    body = [list(map(_cell, heads)), ["---"] * len(heads), *([_cell(each) or "–" for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in body)


def say(text: str) -> None:
    """Print Markdown; a person at a terminal sees its tables aligned and wrapped at words."""
    console = Console()
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("| ")):
        if is_table and console.is_terminal:
            # Rich's own Markdown cuts off what is too wide for a column.
            heads, _, *rows = (
                [Text(re.sub(r"\\(\W)", r"\1", cell)) for cell in row[2:-2].split(" | ")] for row in lines
            )
            grid = Table(*(Column(head, overflow="fold") for head in heads), box=SIMPLE, padding=0)
            for row in rows:
                grid.add_row(*row)
            console.print(grid)
        else:
            print(*lines, sep="\n")


def shown(text: str) -> str:
    """A string of a person's, such as a name, as Markdown that shows it as it is, in one line."""
    line = re.sub(r"&(?=#?\w+;)", "&amp;", _in_one_line(text)).replace("<", "&lt;")
    return _SPECIAL.sub(r"\\\g<0>", line)


def code(text: str) -> str:
    """A string as it is, in one line, set as code."""
    line = _in_one_line(text)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}" if line else ""


def _in_one_line(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
    return " ".join(CONTROL.sub(" ", text).split())


def _cell(text: str) -> str:
    return CONTROL.sub(" ", text).replace("|", "\\|")
