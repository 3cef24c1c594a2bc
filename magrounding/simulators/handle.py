"""WorkerHandle: what workers of any kind are to their pool."""

from __future__ import annotations


class WorkerHandle:
    """Base of the handles of a worker, which start it, send commands of one byte (`worker`), read answers, and kill it.

    Commands are answered in their order: a ticket is the number of a command since the start. The report after the
    start, with the spec of the envs, is ticket 1. `start` and `send` return tickets; a worker that is gone is noticed
    when its answer is awaited. `hang_up` asks the worker to end, and `end` kills it after some time.

    Args:
        index: which worker.
        groups: its rows in the first and in the second half of the batch.

    Attributes:
        has_rows: in each half, true where there are some.
        failures: how often it was replaced since it last finished a step.
        pid: process id, on the machine where it runs; 0 without a process.
    """

    def __init__(self, index: int, groups: tuple[slice, slice]) -> None:
        self.index, self.groups = index, groups
        self.rows = [row for group in groups for row in range(group.start, group.stop)]
        self.has_rows = [group.start < group.stop for group in groups]
        self.failures = 0
        self.sent = self.answered = 0
