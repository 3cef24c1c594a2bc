"""How every command ends: 0, or one clear sentence on standard error and another exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from magrounding.errors import ConfigurationError, MagroundingError
from magrounding.pretrained import PREFIX

BAD_INPUT = 2
INTERRUPTED = 130


def run_command(command: Callable[[], object], interrupted: Callable[[], str] = lambda: "stopped") -> int:
    """Run a command and return its exit code.

    Args:
        command: what to do.
        interrupted: the sentence for Ctrl-C.
    """
    try:
        command()
    except MagroundingError as error:
        return _end(f"error: {error}", BAD_INPUT)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        reason = error.strerror or str(error)
        return _end(f"error: the disk refused{where}: {reason}; mend that, and a run goes on with --resume", BAD_INPUT)
    except KeyboardInterrupt:
        return _end(interrupted(), INTERRUPTED)
    return 0


def distinct_names(sources: Sequence[str | Path], names: Sequence[str]) -> tuple[str, ...]:
    """What to call runs: the names given, or those of their folders; ConfigurationError unless each has its own."""
    chosen = tuple(names) or tuple(Path(str(source).removeprefix(PREFIX)).name for source in sources)
    if len(chosen) != len(sources) or len(set(chosen)) < len(chosen):
        raise ConfigurationError(
            f"--names takes a name of its own for each of the {len(sources)} runs, got {', '.join(chosen)}"
        )
    return chosen


def _end(sentence: str, code: int) -> int:
    print(" ".join(sentence.split()), file=sys.stderr)
    return code
