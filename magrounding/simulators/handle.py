"""Workers as their pool knows them, of whatever kind: a `WorkerHandle` for each, `Workers` for what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from magrounding.simulators.arena import Arena
from magrounding.spec import EnvSpec


@dataclass(frozen=True)
class Failure:
    """Reason for which a worker gave no answer, in one line, and what its simulator raised and where, if it did."""

    reason: str
    error: BaseException | None = None
    trace: str = ""


class WorkerHandle(ABC):
    """Handle of a worker: it starts it, sends commands of one byte (`worker`), reads answers, and kills it.

    Commands are answered in their order: a ticket is the number of a command since the start. The report after the
    start is ticket 1.

    Args:
        index: which worker.
        groups: its rows in the first and in the second half of the batch.

    Attributes:
        has_rows: in each half, true where there are some.
        failures: how often it was replaced since it last finished a step.
    """

    def __init__(self, index: int, groups: tuple[slice, slice]) -> None:
        self.index, self.groups = index, groups
        self.rows = [row for group in groups for row in range(group.start, group.stop)]
        self.has_rows = [group.start < group.stop for group in groups]
        self.failures = 0
        self.sent = self.answered = 0

    @property
    @abstractmethod
    def spec(self) -> EnvSpec:
        """Spec of its envs, as it reported."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """Process id, on the machine where it runs; 0 without a process."""

    @abstractmethod
    def start(self) -> int:
        """Start a fresh worker and return the ticket of its report."""

    @abstractmethod
    def send(self, command: bytes) -> int:
        """Send a command and return its ticket. A worker that is gone is noticed when its answer is awaited."""

    @abstractmethod
    def hang_up(self) -> None:
        """Ask the worker to end."""

    @abstractmethod
    def end(self, seconds: float = 0.0) -> None:
        """Give a worker that was asked some time to end, then kill it."""


Handle = TypeVar("Handle", bound=WorkerHandle)


class Workers(ABC, Generic[Handle]):
    """The workers of a pool.

    Attributes:
        handles: one each.
    """

    handles: list[Handle]

    @abstractmethod
    def arena(self, spec: EnvSpec) -> Arena:
        """Return the arrays by which the pool and all workers know each other's rows, before the first command."""

    @abstractmethod
    def wait(self, tickets: Mapping[Handle, int], seconds: float) -> dict[Handle, Failure]:
        """Wait until every worker has answered its ticket; return those that failed to within `seconds`, and why."""

    @abstractmethod
    def close(self) -> None:
        """Release what the workers share, once they have ended."""
