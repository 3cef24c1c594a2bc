"""The runs behind a table: each is looked for, gone on with, or trained, one folder for each run and seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.tables.branch import beginning, branch
from benchmarks.tables.layout import Row, Table, Training
from benchmarks.tables.lge import guide_of
from magrounding.errors import CheckpointError
from magrounding.experiment.config import RunConfig, make_config, read_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.results import RunResults, over_seeds, read_results
from magrounding.extensions.lge.guide import guide_digest
from magrounding.registry import env_entry
from magrounding.run_folder import RunFolder


@dataclass(frozen=True)
class Job:
    """A training with all that a command decides about it, but the seed.

    Attributes:
        training: what the table says.
        env, agents: environment id and number of agents.
        preset: budgets and options.
        budget: so many times the preset's environment steps.
    """

    training: Training
    env: str
    agents: int
    preset: str
    budget: float = 1.0

    @property
    def name(self) -> str:
        """Name of its folder; ConfigurationError where the Guide that it names is not there."""
        training = self.training
        budget = "" if self.budget == 1 else f"-x{self.budget:g}"
        first = f"-as-{training.budget_of}" if training.budget_of else ""
        size = f"-{training.size}x{training.size}" if training.size else ""
        who = f"{self.env}-{training.agent}-{self.agents}-{self.preset}{budget}"
        # What is read is known by its content: a folder may be named otherwise, or hold other files tomorrow.
        read = env_entry(self.env).describe(**dict(training.games)).source if training.games else ""
        text = f"-text-{hashlib.sha256(read.encode()).hexdigest()[:8]}" if read else ""
        folder = guide_of(training)
        guide = f"-guide-{guide_digest(folder)[:8]}" if folder else ""
        return f"{'-'.join((who, *filter(None, training.stages)))}{first}{size}{text}{guide}"

    def folder(self, out: Path, seed: int) -> Path:
        """Folder of the run of a seed: a run of its own, so that seeds can be added later."""
        return out / self.name / f"seed_{seed}"

    def settings(self, seed: int) -> RunConfig:
        """Settings of the run of a seed; ConfigurationError where there can be none."""
        training = self.training
        settings = make_config(self.env, training.agent, self.agents, self.preset, training.stages, (seed,)).ungated
        if training.games:
            settings = replace(settings, env_options={**settings.env_options, **dict(training.games)})
        if training.network:
            settings = replace(settings, network={**settings.network, **dict(training.network)})
        last, phases = training.stages[-1], dict(settings.phases)
        if training.budget_of:
            phases[training.stages[0]] = settings.of_stage(training.budget_of)
        if training.size:
            size = {"size": training.size}
            sized = (replace(each, env_options={**each.env_options, **size}) for each in settings.of_stage(last))
            phases[last] = tuple(sized)
        settings = replace(settings, phases=phases)
        return settings if self.budget == 1 else settings.with_budget(self.budget)

    def beginnings(self) -> Iterator[Job]:
        """Jobs that are the first stages of this one, longest first."""
        for count in range(len(self.training.stages) - 1, 0, -1):
            yield replace(self, training=replace(self.training, stages=self.training.stages[:count], size=None))


def jobs_of(table: Table, row: Row, preset: str, budget: float) -> list[Job]:
    """The jobs of a row, each once."""
    own = row.preset(preset)
    trainings = dict.fromkeys(cell.training for cell in row.cells.values())
    return [Job(training, table.env, table.agents, own, budget) for training in trainings]


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Jobs and what two or more of them begin with, each once, those of few stages first."""
    wanted = dict.fromkeys(jobs)
    begun = Counter(shorter for job in wanted for shorter in job.beginnings())
    shared = [shorter for shorter, count in begun.items() if count > 1]
    return sorted(dict.fromkeys([*wanted, *shared]), key=lambda job: len(job.training.stages))


def learn(
    job: Job,
    seed: int,
    out: Path,
    device: str,
    command: str,
    seeds: tuple[int, ...] | None = None,
    threads: int | None = None,
) -> bool:
    """Make sure that a job's run of a seed is finished; whether there was anything left to do.

    A run that is missing begins where a finished one of its first stages ended, if there is one. `seeds=()` only
    begins it.

    Raises:
        CheckpointError: its folder holds something else.
        KeyboardInterrupt: after Ctrl-C; the state is saved, and the next call goes on with it.
    """
    settings, folder = job.settings(seed), job.folder(out, seed)
    if not folder.exists():
        sources = (shorter.folder(out, seed) for shorter in job.beginnings())
        source = next(filter(is_finished, sources), None)
        if source is not None:
            branch(source, settings, folder, command)
    begun = check_folder(folder, settings)
    if begun and is_finished(folder):
        return False
    run_curriculum(settings, folder, resume=begun, device=device, command=command, seeds=seeds, threads=threads)
    return True


def is_finished(folder: Path) -> bool:
    """Return whether a run's report is written, its last act."""
    return RunFolder(folder).report.exists()


def check_folder(folder: Path, settings: RunConfig) -> bool:
    """Return whether a folder has a run; CheckpointError where it is of other settings."""
    if not RunFolder(folder).holds_run:
        return False
    found = read_config(folder)
    if beginning(found, found.stages) != beginning(settings, settings.stages):
        raise CheckpointError(
            f"the run in {folder} has other settings than this table asks for, as of another version: move it away, or "
            "name another folder with --out"
        )
    return True


def finished_runs(job: Job, seeds: Sequence[int], out: Path) -> RunResults | None:
    """Read the finished runs of a job, as one run of those of the seeds; None where there is none."""
    found = []
    for seed in seeds:
        folder = job.folder(out, seed)
        if is_finished(folder):
            check_folder(folder, job.settings(seed))
            found.append(read_results(folder))
    return over_seeds(found) if found else None
