"""The first thing a child process runs, as a script: it ties its life to its parent's, then becomes a worker, or Java.

Only the standard library is imported until then. The interpreter is fresh, never a fork: the parent may hold threads of
torch and numba. Its main module is not run again, so scripts need no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1
_GRACE_SECONDS = 3.0


def die_with(parent: int, commands: int) -> None:
    """Have this process killed when its parent, given by its id, ends, however it ends.

    Linux does so even if this process is stopped, or inside a long call into C. Elsewhere a thread watches a pipe that
    only the parent writes to, given by its descriptor.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before that was said
            os._exit(1)
    else:
        threading.Thread(target=die_with_pipe, args=(commands,), daemon=True).start()


def die_with_pipe(pipe: int) -> None:
    """Wait until no process can write to a pipe, leave its reader a moment to end well, and end the process."""
    poll = select.poll()
    poll.register(pipe, 0)  # hanging up is always reported, and nothing else is asked for
    poll.poll()
    threading.Event().wait(_GRACE_SECONDS)
    os._exit(1)


def become_program() -> None:
    """Become another program; behind "exec" come the parent's id, descriptors to read and to write, and a command.

    Linux kills it with its parent; everywhere it has to end when its standard input does, which only the parent holds.
    """
    parent, source, sink = map(int, sys.argv[2:5])
    if sys.platform == "linux":
        die_with(parent, source)
    for place, descriptor in enumerate((source, sink, sink)):
        os.dup2(descriptor, place)
    for descriptor in (source, sink):
        os.set_inheritable(descriptor, False)
    os.execv(sys.argv[5], sys.argv[5:])


def main() -> None:
    """Become a worker; the arguments are what `WorkerHandle.start` writes."""
    if sys.argv[1] == "exec":
        become_program()
    parent, commands, answers, arena, recipe, message, *bounds = map(int, sys.argv[1:])
    die_with(parent, commands)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    for descriptor in (commands, answers, arena, recipe, message):
        os.set_inheritable(descriptor, False)  # a simulator's own processes must not hold the pipes open
    path, packed = pickle.loads(os.pread(recipe, os.fstat(recipe).st_size, 0))
    sys.path[:] = path
    from magrounding.output import show_anything
    from magrounding.simulators.worker import serve

    show_anything()
    serve(packed, commands, answers, (arena, message), (range(*bounds[:2]), range(*bounds[2:])))


if __name__ == "__main__":
    main()
