"""Train a team through a curriculum: `python -m benchmarks.curriculum --env ma_rtfm --agents 3`."""

from __future__ import annotations

import sys

from magrounding.cli import train
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding train` under this name, and return its exit code."""
    return CommandLine.of_process("python -m benchmarks.curriculum").run(train)


if __name__ == "__main__":
    sys.exit(main())
