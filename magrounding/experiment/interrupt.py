"""StopRequest: Ctrl-C asks a run to stop where its state is whole, and is obeyed at once where nothing can be lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class StopRequest:
    """While entered, Ctrl-C sets `requested`; a second one, or one within `immediate`, raises KeyboardInterrupt.

    Outside the main thread signals cannot be caught, and nothing is changed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._immediate = False
        self._before: Any = None

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    @contextmanager
    def immediate(self) -> Iterator[None]:
        """A stretch that changes nothing to be saved: Ctrl-C ends it at once."""
        if self.requested:
            raise KeyboardInterrupt
        self._immediate = True
        try:
            yield
        finally:
            self._immediate = False

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.requested or self._immediate:
            raise KeyboardInterrupt
        self.requested = True
