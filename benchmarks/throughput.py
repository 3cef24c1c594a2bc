"""Speed of worlds and learners: `python -m benchmarks.throughput --env ma_rtfm --json speed.json`."""

from __future__ import annotations

import sys

from magrounding.cli import bench
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding bench` under this name, and return its exit code."""
    return CommandLine.of_process("python -m benchmarks.throughput").run(bench)


if __name__ == "__main__":
    sys.exit(main())
