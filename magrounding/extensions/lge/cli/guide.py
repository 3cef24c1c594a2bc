"""Train a Guide from gold trajectories: `magrounding guide --gold runs/gold.jsonl --out runs/guide`."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from magrounding.cli.command import CommandLine
from magrounding.extensions.lge.guide import Guide, save_guide
from magrounding.extensions.lge.guide.encoder import HashedEncoder, LanguageModelEncoder
from magrounding.extensions.lge.guide.guide import GUIDE_FILE
from magrounding.extensions.lge.guide.learning import PRETRAINED, GuideLearning, examples_of, learn_guide
from magrounding.extensions.lge.guide.metrics import GuideMetrics, guide_metrics
from magrounding.owner import new_file
from magrounding.progress import Display, duration
from magrounding.schema import Count, Natural, Positive
from magrounding.single.scienceworld.trajectories import learnable
from magrounding.threads import ThreadPlan, using


@dataclass(frozen=True)
class Arguments:
    """Train LGE's Guide on gold trajectories, to select relevant actions, and measure it on validation variations."""

    gold: Path
    """File of `python -m tools.scienceworld.collect_gold`, of a checkout."""
    out: Path
    """Folder of the Guide."""
    language_model: Path | None = None
    """Folder of a pretrained language model to fine-tune. (default: none, a small network learns from scratch)"""
    epochs: Count | None = None
    """Passes over the gold actions. (default: 40; 10 with a language model)"""
    rate: Positive | None = None
    """Learning rate. (default: .002; .00005 with a language model)"""
    hard_negatives: Natural | None = None
    """Hard negatives for each gold action. (default: 8; 1 with a language model)"""
    seed: Natural = 0
    """Seed of the weights, the order and the negatives."""


def run(arguments: Arguments, line: CommandLine) -> GuideMetrics:
    """Learn, judge and save."""
    with new_file(arguments.out / GUIDE_FILE, "the training of"):
        train, valid = learnable(arguments.gold)
        names = "epochs", "rate", "hard_negatives"
        own = {name: value for name in names if (value := getattr(arguments, name)) is not None}
        learning = replace(PRETRAINED if arguments.language_model else GuideLearning(), seed=arguments.seed, **own)
        torch.manual_seed(arguments.seed)
        guide = Guide(LanguageModelEncoder(arguments.language_model) if arguments.language_model else HashedEncoder())
        print(f"{len(examples_of(train)):,} gold actions of {len(train):,} training variations", flush=True)
        start = time.monotonic()
        # A language model's operations are large enough for torch's own threads.
        threads = nullcontext() if arguments.language_model else using(ThreadPlan())
        with threads, Display() as display:

            def show(epoch: int, loss: float) -> None:
                display.show("epochs", epoch / learning.epochs, [f"loss {loss:.3f}"])

            loss = learn_guide(guide, train, learning, show)
        took = time.monotonic() - start
        print(f"loss {loss:.3f} after {learning.epochs} epochs, {duration(took)}")
        found = guide_metrics(guide.score, valid)
        print(f"{len(valid)} validation variations: {summary(found)}")
        record = {
            "command": str(line),
            "learning": asdict(learning),
            "variations": {"train": len(train), "valid": len(valid)},
            "loss": loss,
            "seconds": round(took, 1),
            "validation": {"rsr": {str(k): value for k, value in found.rsr.items()}, "map": found.map},
        }
        save_guide(arguments.out, guide, record)
        print(f"Guide: {arguments.out}")
        return found


def summary(found: GuideMetrics) -> str:
    """Return the metrics in a line."""
    ranks = "" if found.gar is None else f", gold action at rank {found.gar[0]:.1f}"
    return ", ".join(f"RSR@{k} {value:.3f}" for k, value in found.rsr.items()) + f", MAP {found.map:.3f}{ranks}"
