"""Weigh the rooms of the house, `budget.toml`: `python -m tools.budget [root]` fails where one has too many tokens.

A file is in the first room that has a glob for it; `*` also matches `/`. Tokens are `tokenize`'s without comments
and layout, so that neither comments nor line breaks cost anything; a docstring is one. Files that git ignores are none.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

_FREE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
_FREE |= {tokenize.ENDMARKER}


def weigh(path: Path) -> Counter[str]:
    """Files (1), lines, tokens and `raise` statements of a file."""
    with path.open("rb") as file:
        tokens = sum(token.type not in _FREE for token in tokenize.tokenize(file.readline))
    text = path.read_bytes()
    raises = sum(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(text)))
    return Counter(files=1, lines=text.count(b"\n"), tokens=tokens, raises=raises)


def main(root: Path) -> int:
    """Print the table; the exit code is 1 where a room is over its limit, or a file in no room."""
    rooms = tomllib.loads((root / "budget.toml").read_text(encoding="utf-8"))
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    names = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    totals = {room: Counter[str]() for room in [*rooms, "package"]}
    homeless = []
    for name in sorted({name for name in names if (root / name).is_file()}):
        room = next(
            (room for room, each in rooms.items() if any(fnmatchcase(name, glob) for glob in each["files"])), None
        )
        if room is None:
            homeless.append(name)
            continue
        totals[room] += (weight := weigh(root / name))
        totals["package"] += weight if name.startswith("magrounding/") else Counter()
    print(f"{'room':<22}{'files':>7}{'lines':>9}{'raise':>7}{'tokens':>10}{'limit':>10}")
    for room, total in totals.items():
        limit = rooms[room]["tokens"] if room in rooms else 0
        over = f"  {total['tokens'] - limit:,} over" if room in rooms and total["tokens"] > limit else ""
        counts = f"{total['files']:>7,}{total['lines']:>9,}{total['raises']:>7,}{total['tokens']:>10,}"
        print(f"{room:<22}{counts}" + (f"{limit:>10,}{over}" if room in rooms else ""))
    for name in homeless:
        print(f"{name} is in no room of budget.toml: add a glob for it", file=sys.stderr)
    return int(bool(homeless) or any(totals[room]["tokens"] > rooms[room]["tokens"] for room in rooms))


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:2])))
