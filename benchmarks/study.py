"""The table of a study: `python -m benchmarks.study runs/study`."""

from __future__ import annotations

import sys

from magrounding.cli import study
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding study` under this name, and return its exit code."""
    return study.main(CommandLine.of_process("python -m benchmarks.study"))


if __name__ == "__main__":
    sys.exit(main())
