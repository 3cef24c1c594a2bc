"""A tiny run with trackers, as a process that may kill itself: its arguments are those of `main`."""

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import torch

from magrounding.experiment import curriculum, seed_run
from magrounding.progress import Display
from tests.experiment.tiny_runs import tiny_settings


def main(folder: Path, trackers: str, kill_at: int) -> None:
    """Train, or go on, with ids of trackers; killed (kill -9) after so many checkpoints, 0: never."""
    save, saved = seed_run.save_checkpoint, 0

    def save_and_die(path: Path, record: Mapping[str, object], tensors: Mapping[str, torch.Tensor]) -> None:
        nonlocal saved
        save(path, record, tensors)
        saved += 1
        if saved == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    seed_run.save_checkpoint = save_and_die
    settings = tiny_settings(stages=("s1", "s3"), final_sets=("eval",))
    ids = trackers.split(",") if trackers else None
    resume = folder.exists()
    curriculum.run_curriculum(
        settings, folder, resume=resume, trackers=ids, project="tests", display=Display(), device="cpu"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
