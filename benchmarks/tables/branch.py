"""A run that goes on where another one ended: two curricula with the same beginning need to learn it once."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from magrounding.agents.weights import versions
from magrounding.errors import CheckpointError
from magrounding.experiment.checkpoint import load_checkpoint, save_checkpoint
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.owner import RunOwner
from magrounding.run_folder import RunFolder


def beginning(settings: RunConfig, stages: Sequence[str]) -> RunConfig:
    """These settings as far as some stages go: equal where they compute the same there.

    Descriptions do not count, nor how many processes play.
    """
    phases = {stage: settings.of_stage(stage) for stage in stages}
    evaluation = replace(settings.evaluation, whole_games=None)
    return replace(
        settings, about="", budget=1.0, phases=phases, evaluation=evaluation, workers=0, stages=tuple(stages)
    )


def branch(source: Path, settings: RunConfig, folder: Path, command: str = "") -> None:
    """Make a run's folder that already holds the first stages of its curriculum, learnt by a finished run.

    `run_curriculum(settings, folder, resume=True)` then learns the others, as if it had learnt all of them.

    Args:
        source: folder of the finished run, of the same one seed.
        settings: of the new run; its first stages and all that was decided about them are those of the source.
        folder: of the new run; must not exist.
        command: the command line, for the report.

    Raises:
        CheckpointError: the source is no such run or damaged, the folder is in the way, or another process makes it.
    """
    begun = parse_config((run := RunFolder(source)).config())
    first = settings.stages[: len(begun.stages)]
    if len(settings.seeds) > 1 or beginning(begun, begun.stages) != beginning(settings, first):
        raise CheckpointError(f"the run in {source} is not how this one begins: train it from its first stage")
    (seed,) = begun.seeds
    learnt = run.seed(seed, 1)
    if not learnt.is_trained(first[-1]):
        raise CheckpointError(f"the run in {source} is not finished: let it go on with --resume")
    if folder.exists():
        raise CheckpointError(f"{folder} exists already: remove it, or name another")
    made = RunFolder(folder.with_name(f".{folder.name}.partial"))
    own = made.seed(seed, 1)
    with RunOwner(made) as owner:
        for left in made.path.iterdir():  # by a process that was killed
            if left.is_dir():
                shutil.rmtree(left)
            elif left != made.owner:
                left.unlink()
        for stage in first:
            shutil.copytree(learnt.weights(stage), own.weights(stage))
        record, tensors = load_checkpoint(learnt.checkpoint, **settings.resolve().origin)
        save_checkpoint(own.checkpoint, {**record, "config": settings.digest}, tensors)
        shutil.copy2(learnt.metrics, own.metrics)
        about = {"versions": versions(), "command": command, "branched_from": str(source)}
        made.write_config({**run.config(), **settings.as_dict(), **about})
        made.path.replace(folder)  # whole, or not there at all
        owner.folder = RunFolder(folder)
