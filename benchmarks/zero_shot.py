"""Evaluate runs on games they have never met: `python -m benchmarks.zero_shot --run runs/a runs/b --out runs/a-b`."""

from __future__ import annotations

import sys

from magrounding.cli import evaluate
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding evaluate` under this name, and return its exit code."""
    return CommandLine.of_process("python -m benchmarks.zero_shot").run(evaluate)


if __name__ == "__main__":
    sys.exit(main())
