"""The runs behind a table in processes side by side; those that others begin with come first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from benchmarks.tables.runs import Job, learn
from magrounding.experiment.jobs.job import Job as Command
from magrounding.experiment.jobs.job import Outcome
from magrounding.experiment.jobs.seeds import TRAIN


class Waiting:
    """Runs that are to be trained, each as soon as those of its first stages are finished, where they are trained too.

    Args:
        jobs: all of them, those of few stages first (`runs.in_order`).
        seeds: of each.
        out, device, command: as of `runs.learn`.
        threads: of each process.
    """

    def __init__(
        self, jobs: Sequence[Job], seeds: Sequence[int], out: Path, device: str, command: str, threads: int
    ) -> None:
        self._out, self._device, self._command, self._threads = out, device, command, threads
        self._waiting = list(product(jobs, seeds))
        self._unfinished = {self._name(*each): each for each in self._waiting}

    def ready(self) -> list[Command]:
        """The commands of runs that may begin now, each once; the runs have begun."""
        found = []
        for job, seed in self._waiting[:]:
            if any(self._name(shorter, seed) in self._unfinished for shorter in job.beginnings()):
                continue
            self._waiting.remove((job, seed))
            name, folder = self._name(job, seed), job.folder(self._out, seed).absolute()
            if learn(job, seed, self._out, self._device, self._command, seeds=()):
                words = ("--out", str(folder), "--resume", "--device", self._device, "--threads", str(self._threads))
                found.append(Command(name, (*TRAIN, *words), folder))
            else:
                print(f"{name} is finished already", flush=True)
                del self._unfinished[name]
        return found

    def ended(self, outcome: Outcome) -> list[Command]:
        """The commands of runs that waited for one that has ended well."""
        if outcome.failed:
            return []
        del self._unfinished[outcome.job.name]
        return self.ready()

    @staticmethod
    def _name(job: Job, seed: int) -> str:
        return f"{job.name}, seed {seed}"
