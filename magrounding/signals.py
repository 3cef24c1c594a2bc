"""Signals that ask a process to end: Ctrl-C, and those of schedulers, containers and terminals that are closed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

CTRL_C = signal.SIGINT
JOB = "MAGROUNDING_JOB"
"""Variable of a process that is one of several jobs (`experiment/jobs`): the file in which it says how far it is."""
TAKES_OVER = "MAGROUNDING_TAKES_OVER"
"""Variable of a process that takes over from one that a scheduler gave up: what that one owns becomes free soon."""
OTHERS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(KeyboardInterrupt):
    """A request to end; `signum` is its signal, and 128 more the exit code of a command that it ended."""

    def __init__(self, signum: int = CTRL_C) -> None:
        super().__init__()
        self.signum = signum


@contextmanager
def caught(signals: Sequence[int], handle: Callable[[int], object]) -> Iterator[None]:
    """Call `handle` with the number of each of some signals that comes while entered.

    Outside the main thread signals cannot be caught, and nothing is changed. What is ignored, as by `nohup`, stays so,
    but Ctrl-C, which shells ignore for what runs in the background. With SIGHUP the terminal is gone: what is printed
    from then on goes nowhere, instead of ending what is to be saved.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminals = [file for file in (1, 2) if os.isatty(file)]

    def handler(signum: int, frame: FrameType | None) -> None:
        for file in terminals if signum != CTRL_C and signum != signal.SIGTERM else ():
            os.dup2(os.open(os.devnull, os.O_WRONLY), file)
        handle(signum)

    taken = [each for each in signals if each == CTRL_C or signal.getsignal(each) not in (signal.SIG_IGN, None)]
    before = {each: signal.signal(each, handler) for each in taken}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


class Raise:
    """A handler that ends a command by the first signal; later ones do not disturb what is cleaned up."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self, signum: int) -> None:
        if not self._asked:
            self._asked = True
            raise Stopped(signum)


def stop_with_parent() -> None:
    """Let SIGTERM end this process, if it is a job, when the process that started it has ended, however that ended.

    That one holds the other end of the standard input, and writes nothing to it.
    """
    if JOB in os.environ:
        threading.Thread(target=_stop_at_end_of_input, name="parent", daemon=True).start()


def _stop_at_end_of_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
