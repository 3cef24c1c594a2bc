"""Arguments of commands whose work is divided among processes, and how they run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.command import derived
from magrounding.experiment.jobs.cluster import Cluster, RayPlaces
from magrounding.experiment.jobs.job import Job, Outcome, check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.progress import Display
from magrounding.threads import divide_cores


@dataclass(frozen=True, kw_only=True)
class JobsArguments:
    """Processes side by side, here or on a cluster."""

    jobs: int | None = derived("1, or with --cluster as many as it has room for")
    """Processes side by side; 0: as many as the cores allow. They share the cores, or have --threads each."""
    cluster: str | None = derived("none, this process or --jobs of this machine")
    """ray (processes of this machine, placed by Ray) or ray://ADDRESS (on the cluster that `ray start` gave this
    address). All its nodes have to see the folder --out."""
    cpus_per_job: float = 1.0
    """Cores of a job on a cluster, and its --threads where none are named."""
    gpus_per_job: float = 0.0
    """GPUs of a job on a cluster, e.g. 0.25 for four jobs on one."""

    @property
    def side_by_side(self) -> bool:
        """True where the work is divided among processes."""
        return self.cluster is not None or self.jobs not in (None, 1)

    def threads_of_job(self, threads: int | None) -> int:
        """Threads of each job, where the command has so many by --threads; ConfigurationError for what cannot be."""
        if self.cluster is None:
            return divide_cores(self.jobs or 0, threads)[1]
        return threads or self._cluster().threads

    def run(
        self,
        jobs: Iterable[Job],
        shared: Path,
        display: Display,
        threads: int | None = None,
        ended: Callable[[Outcome], Iterable[Job] | None] | None = None,
        stops: Callable[[Job], bool] | None = None,
    ) -> list[Outcome]:
        """Run jobs as asked; see `run_jobs`.

        Args:
            jobs: commands that have `threads_of_job` threads.
            shared: the folder below which all of them write.
            display: shows them.
            threads: of each job, as the command has it by --threads.
            ended: called as one ends.
            stops: whether one is to end early.

        Raises:
            JobsFailed: some did not end well; the others have.
        """
        places = (
            divide_cores(self.jobs or 0, threads)[0] if self.cluster is None else RayPlaces(self._cluster(), shared)
        )
        outcomes = run_jobs(jobs, places, display, ended=ended, stops=stops)
        check_outcomes(outcomes)
        return outcomes

    def repeated(self) -> tuple[str, ...]:
        """The same arguments as words, for the command that goes on."""
        words = ("--jobs", str(self.jobs)) if self.jobs is not None else ()
        if self.cluster is None:
            return words
        each = ("--cpus-per-job", f"{self.cpus_per_job:g}", "--gpus-per-job", f"{self.gpus_per_job:g}")
        return (*words, "--cluster", self.cluster, *each)

    def _cluster(self) -> Cluster:
        return Cluster(self.cluster or "", self.cpus_per_job, self.gpus_per_job, self.jobs or 0)
