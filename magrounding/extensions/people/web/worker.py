"""Worker: a thread of its own for each game, so that one that is slow, or hangs, holds up no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import torch

from magrounding.extensions.people.web.messages import Refusal

T = TypeVar("T")


class Worker:
    """Thread that calls functions one after another, and does not keep the process from ending.

    An answer is waited for `patience` seconds, then the caller gets a Refusal "lost", and the thread stays with it.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._work, daemon=True).start()

    async def do(self, function: Callable[[], T]) -> T:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self.submit(function)), self._patience)
        except TimeoutError:
            raise Refusal("lost") from None

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Call a function without waiting for its end."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # what is given up is done all the same
        self._jobs.put((future, function))
        return future

    def end(self) -> None:
        self._jobs.put(None)

    def _work(self) -> None:
        torch.set_num_threads(1)  # OpenMP counts threads for each thread that calls it
        while (job := self._jobs.get()) is not None:
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
