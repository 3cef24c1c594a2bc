"""Train a Guide from gold trajectories: `python -m benchmarks.guide --gold runs/gold.jsonl --out runs/guide`."""

from __future__ import annotations

import sys

from magrounding.cli import guide
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding guide` under this name, and return its exit code."""
    return guide.main(CommandLine.of_process("python -m benchmarks.guide"))


if __name__ == "__main__":
    sys.exit(main())
