"""Worker: a thread of its own for each game, so that one that is slow, or hangs, holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import torch

from magrounding.play.web.messages import Refusal

T = TypeVar("T")


class Worker:
    """Calls functions one after another, in a thread that does not keep the process from ending.

    Args:
        patience: seconds after which an answer is waited for no longer.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=self._work, daemon=True).start()

    async def do(self, function: Callable[[], T]) -> T:
        """Call a function and return its result.

        Raises:
            Refusal: "lost", where there is no answer in time. The thread stays with the function for ever.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def job() -> None:
            try:
                result, error = function(), None
            except BaseException as raised:
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:  # the server has ended meanwhile
                return

        self._jobs.put(job)
        try:
            return await asyncio.wait_for(future, self._patience)
        except TimeoutError:
            raise Refusal("lost") from None

    def do_unheard(self, function: Callable[[], object]) -> None:
        """Call a function without waiting for its end."""

        def job() -> None:
            with suppress(Exception):
                function()

        self._jobs.put(job)

    def end(self) -> None:
        """Let the thread end after what it has begun."""
        self._jobs.put(None)

    def _work(self) -> None:
        torch.set_num_threads(1)  # OpenMP counts threads for each thread that calls it
        while (job := self._jobs.get()) is not None:
            job()
