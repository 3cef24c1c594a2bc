"""Record games to learn from: `python -m benchmarks.demonstrations --env ma_rtfm --stage s1 --out demos.npz`."""

from __future__ import annotations

import sys

from magrounding.cli import record
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding record` under this name, and return its exit code."""
    return record.main(CommandLine.of_process("python -m benchmarks.demonstrations"))


if __name__ == "__main__":
    sys.exit(main())
