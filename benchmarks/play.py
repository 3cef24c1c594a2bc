"""Play at the terminal, with agents or alone: `python -m benchmarks.play --env ma_rtfm --players human,oracle`."""

from __future__ import annotations

import sys

from magrounding.cli import play
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding play` under this name, and return its exit code."""
    return play.main(CommandLine.of_process("python -m benchmarks.play"))


if __name__ == "__main__":
    sys.exit(main())
