"""Games in the browser: `python -m benchmarks.serve --env ma_rtfm`."""

from __future__ import annotations

import sys

from magrounding.cli import serve
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding serve` under this name, and return its exit code."""
    return serve.main(CommandLine.of_process("python -m benchmarks.serve"))


if __name__ == "__main__":
    sys.exit(main())
