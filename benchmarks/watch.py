"""Watch a trained team play a game: `python -m benchmarks.watch --run runs/quick --out game.gif`."""

from __future__ import annotations

import sys

from magrounding.cli import watch
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding watch` under this name, and return its exit code."""
    return watch.main(CommandLine.of_process("python -m benchmarks.watch"))


if __name__ == "__main__":
    sys.exit(main())
