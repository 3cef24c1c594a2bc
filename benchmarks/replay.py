"""Saved games again: `python -m benchmarks.replay runs/match/games_0.jsonl --game 3 --out game.gif`."""

from __future__ import annotations

import sys

from magrounding.cli import replay
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding replay` under this name, and return its exit code."""
    return replay.main(CommandLine.of_process("python -m benchmarks.replay"))


if __name__ == "__main__":
    sys.exit(main())
