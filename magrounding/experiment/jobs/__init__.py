"""Jobs: commands of this package, each with a folder of its own, several at a time, here or on a cluster."""

from __future__ import annotations

from magrounding.experiment.jobs.job import Job, JobsFailed, Outcome
from magrounding.experiment.jobs.runner import run_jobs

__all__ = ["Job", "JobsFailed", "Outcome", "run_jobs"]
