"""Colours: the text of a game, painted for a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.text import Text

_STYLES = ((r"\d", "bold cyan"), (r"[A-Z]", "bold red"), (r"[a-z]", "bold green"), (r"#+", "bright_black"))
"""Signs on a map: agents, monsters, things, walls."""
_BARS = "▁▂▃▄▅▆▇█"
_MANUAL = "manual:"


def coloured(shown: str) -> Text:
    """A picture with its signs in colour: those of a map's lines, and the one that begins a line of its legend."""
    text, begin = Text(shown), 0
    for line in shown.split("\n"):
        words = line.split()
        if line.startswith(("step ", "goal:", _MANUAL, "task:")):
            text.stylize("bold", begin, begin + len(line))
        elif words and (max(map(len, words)) < 4 or "#" in line):
            for pattern, style in _STYLES:
                for sign in re.finditer(pattern, line):
                    text.stylize(style, begin + sign.start(), begin + sign.end())
        elif words and len(words[0]) == 1:
            for pattern, style in _STYLES:
                if re.match(pattern, line):
                    text.stylize(style, begin, begin + 1)
        begin += len(line) + 1
    return text


def marked(texts: str, weights: Sequence[float] | None, legend: str) -> Text:
    """Goal and manual, each statement of the manual behind a bar that is as high as its weight.

    Args:
        texts: the lines of a picture that begin with its goal or manual.
        weights: of the statements, which are the lines behind "manual:"; None leaves the texts as they are.
        legend: what the bars stand for, shown behind "manual:".
    """
    if weights is None:
        return coloured(texts)
    before, _, statements = texts.partition(_MANUAL)
    text = coloured(before + _MANUAL).append(f" {legend}\n", style="yellow")
    most, even = max(weights, default=0.0), 1 / max(1, len(weights))
    for statement, weight in zip(statements.strip("\n").split("\n"), weights, strict=False):
        bar = _BARS[round(weight / most * (len(_BARS) - 1))] if most > 0 else _BARS[0]
        # Heavier than all would be if they weighed the same.
        text.append(f"{bar} ", style="yellow").append(f"{statement.strip()}\n", style="bold" if weight > even else "")
    return text
