"""Evaluate runs on games they have never met: `python -m benchmarks.zero_shot --run runs/a runs/b --out runs/a-b`."""

from __future__ import annotations

import sys

from magrounding.cli import evaluate
from magrounding.cli.command import program

main = program("python -m benchmarks.zero_shot", evaluate.__name__)

if __name__ == "__main__":
    sys.exit(main())
