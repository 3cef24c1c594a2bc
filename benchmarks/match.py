"""Matches between line-ups: `python -m benchmarks.match --env ma_rtfm --players script:moves.txt,oracle random`."""

from __future__ import annotations

import sys

from magrounding.cli import match
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding match` under this name, and return its exit code."""
    return match.main(CommandLine.of_process("python -m benchmarks.match"))


if __name__ == "__main__":
    sys.exit(main())
