"""Put runs side by side: `python -m benchmarks.compare --runs runs/a runs/b --names with without --out runs/ab`."""

from __future__ import annotations

import sys

from magrounding.cli import compare
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding compare` under this name, and return its exit code."""
    return compare.main(CommandLine.of_process("python -m benchmarks.compare"))


if __name__ == "__main__":
    sys.exit(main())
