"""Put a trained team behind a segmenter: `python -m benchmarks.segments --run runs/quick --out runs/reader`."""

from __future__ import annotations

import sys

from magrounding.cli import segments
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding segments` under this name, and return its exit code."""
    return segments.main(CommandLine.of_process("python -m benchmarks.segments"))


if __name__ == "__main__":
    sys.exit(main())
