"""The jobs of a training run: one for each seed, in the folder of that seed."""

from __future__ import annotations

from collections.abc import Sequence

from magrounding.experiment.checkpoint import is_finished
from magrounding.experiment.config import RunConfig
from magrounding.experiment.jobs.job import Job
from magrounding.run_folder import RunFolder, SeedFolder

TRAIN = ("magrounding.cli.main", "train")


def seed_words(run: RunFolder, seed: int) -> tuple[str, ...]:
    """Arguments of `train` for one seed of a run that has begun: it goes on where it was stopped."""
    return ("--out", str(run), "--resume", "--only-seeds", str(seed))


def unfinished(settings: RunConfig, run: RunFolder) -> dict[int, SeedFolder]:
    """Seed → its files, for the seeds of a run that are not at their ends."""
    folders = run.of_seeds(settings.seeds)
    return {seed: folder for seed, folder in folders.items() if not is_finished(settings, folder)}


def seed_jobs(settings: RunConfig, run: RunFolder, words: Sequence[str]) -> list[Job]:
    """A job for each `unfinished` seed of a run that has begun; the report is written when all have ended.

    Args:
        settings: of the run.
        run: its folder, by a path that is the same everywhere.
        words: further arguments of `train`, such as ("--threads", "1").
    """
    return [
        Job(f"seed {seed}", (*TRAIN, *seed_words(run, seed), *words), folder.path)
        for seed, folder in unfinished(settings, run).items()
    ]
