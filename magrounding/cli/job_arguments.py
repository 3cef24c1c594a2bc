"""Arguments of commands whose work is divided among processes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magrounding.cli.command import flags
from magrounding.errors import ConfigurationError
from magrounding.registry import service
from magrounding.schema import Natural, NonNegative, Positive
from magrounding.threads import divide_cores


@dataclass(frozen=True, kw_only=True)
class JobsArguments:
    """Processes side by side, here or on a cluster."""

    jobs: Natural | None = None
    """Processes side by side; 0: as many as the cores allow. They share the cores, or have --threads each. (default: 1,
    or with --cluster as many as it has room for)"""
    cluster: str | None = None
    """ray (processes of this machine, placed by Ray) or ray://ADDRESS (on the cluster that `ray start` gave this
    address). All its nodes have to see the folder --out. (default: none, this process or --jobs of this machine)"""
    cpus_per_job: Positive = 1.0
    """Cores of a job on a cluster, and its --threads where none are named."""
    gpus_per_job: NonNegative = 0.0
    """GPUs of a job on a cluster, e.g. 0.25 for four jobs on one."""

    @property
    def side_by_side(self) -> bool:
        """True where the work is divided among processes."""
        return self.cluster is not None or self.jobs not in (None, 1)

    def threads_of_job(self, threads: int | None) -> int:
        """Threads of each job, where the command has so many by --threads; ConfigurationError for what cannot be."""
        if self.cluster is None:
            return divide_cores(self.jobs or 0, threads)[1]
        self._address()
        return threads or max(1, int(self.cpus_per_job))

    def places(self, shared: Path, threads: int | None = None) -> Any:
        """Return the places for `run_jobs`, of jobs with so many `threads` (--threads) that write below `shared`."""
        if self.cluster is None:
            return divide_cores(self.jobs or 0, threads)[0]
        return service("cluster")(self._address(), shared, self.cpus_per_job, self.gpus_per_job, self.jobs or 0)

    def repeated(self) -> tuple[str, ...]:
        """The same arguments as words, for the command that goes on."""
        per_job = {"cpus_per_job": f"{self.cpus_per_job:g}", "gpus_per_job": f"{self.gpus_per_job:g}"}
        return flags(jobs=self.jobs, cluster=self.cluster, **({} if self.cluster is None else per_job))

    def _address(self) -> str:
        """Address of the cluster as Ray takes it; ConfigurationError for another text."""
        if not re.fullmatch("ray(://.+)?", self.cluster or ""):
            raise ConfigurationError(
                f"--cluster takes ray, of this machine, or ray://ADDRESS, e.g. ray://10.0.0.1:6379: {self.cluster!r}"
            )
        return (self.cluster or "").partition("://")[2]
