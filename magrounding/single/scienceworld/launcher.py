"""The first thing a Java process is, as a script: it ties its life to its parent's, then becomes Java.

Only the standard library is imported, so that it takes a moment. Linux kills the process with its parent, even one that
is stopped; everywhere Java ends when its standard input does, which only the parent holds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become Java; the arguments are the parent's process id, two descriptors, and the command."""
    parent, source, sink = map(int, sys.argv[1:4])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before that was said
            os._exit(1)
    for place, descriptor in enumerate((source, sink, sink)):
        os.dup2(descriptor, place)
    for descriptor in (source, sink):
        os.set_inheritable(descriptor, False)
    os.execv(sys.argv[4], sys.argv[4:])


if __name__ == "__main__":
    main()
