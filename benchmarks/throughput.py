"""Speed of worlds and learners: `python -m benchmarks.throughput --env ma_rtfm --json speed.json`."""

from __future__ import annotations

import sys

from magrounding.cli import bench
from magrounding.cli.command import program

main = program("python -m benchmarks.throughput", bench.__name__)

if __name__ == "__main__":
    sys.exit(main())
