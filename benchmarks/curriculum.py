"""Train a team through a curriculum: `python -m benchmarks.curriculum --env ma_rtfm --agents 3`."""

from __future__ import annotations

import sys

from magrounding.cli import train
from magrounding.cli.command import program

main = program("python -m benchmarks.curriculum", train.__name__)

if __name__ == "__main__":
    sys.exit(main())
