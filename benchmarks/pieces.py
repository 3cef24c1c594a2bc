"""Make word pieces of a world's texts: `python -m benchmarks.pieces --env scienceworld --out pieces.json`."""

from __future__ import annotations

import sys

from magrounding.cli import pieces
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding pieces` under this name, and return its exit code."""
    return pieces.main(CommandLine.of_process("python -m benchmarks.pieces"))


if __name__ == "__main__":
    sys.exit(main())
