"""StopRequest: a signal asks a run to stop where its state is whole, and at once where nothing can be lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Self

from magrounding.signals import CTRL_C, OTHERS, Stopped, caught


class StopRequest(ExitStack):
    """Handler of Ctrl-C, SIGTERM and SIGHUP while entered: they set `requested`; a second Ctrl-C raises as `stop` does.

    So does any of them within `immediate`. Schedulers and terminals send signals twice: a second one is no hurry.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requested = 0
        self._immediate = False

    def __enter__(self) -> Self:
        self.enter_context(caught((CTRL_C, *OTHERS), self._handle))
        return self

    def stop(self) -> None:
        """Raise a KeyboardInterrupt, which knows the signal, if one was sent."""
        if self.requested:
            raise Stopped(self.requested)

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """A stretch that changes nothing to be saved: a signal ends it at once."""
        self.stop()
        self._immediate = True
        try:
            yield
        finally:
            self._immediate = False

    def _handle(self, signum: int) -> None:
        again, self.requested = self.requested, signum
        if self._immediate or (again and signum == CTRL_C):
            self.stop()
