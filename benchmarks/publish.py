"""Keep a trained team in the package: `python -m benchmarks.publish --run runs/… --name ma_rtfm-s5-2agents`."""

from __future__ import annotations

import sys

from magrounding.cli import publish
from magrounding.cli.command import CommandLine


def main() -> int:
    """Run `magrounding publish` under this name, and return its exit code."""
    return publish.main(CommandLine.of_process("python -m benchmarks.publish"))


if __name__ == "__main__":
    sys.exit(main())
