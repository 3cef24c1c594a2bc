"""LGE table 1: the Guide by itself, beside the frequency baselines and the paper's numbers (Golchha et al. 2024)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from magrounding.cli.command import CommandLine
from magrounding.errors import CheckpointError
from magrounding.experiment.tables import code, page, table
from magrounding.extensions.lge.cli import guide as guide_command
from magrounding.extensions.lge.guide import load_guide
from magrounding.extensions.lge.guide.metrics import GuideMetrics, evaluate, guide_metrics
from magrounding.single.scienceworld.trajectories import Trajectory, learnable
from magrounding.storage import write_atomic, write_json

ID = "lge_table1"
TITLE = "LGE table 1: the Guide by itself, on validation variations of the 30 tasks of ScienceWorld"
KS = (50, 20, 10)

BASELINE = 50
"""Actions of the frequency baselines."""

PAPER: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("G_g", 50): ("0.71", "0.52", "", "", ""),
    ("G_τ", 50): ("0.90", "0.66", "", "", ""),
    ("Guide", 50): ("0.99", "0.68", "7.4 ± 16.2", "1.8 ± 9.4", "0.31 ± 2.3"),
    ("Guide", 20): ("0.94", "0.67", "", "", ""),
    ("Guide", 10): ("0.79", "0.61", "", "", ""),
}
"""(model, k) → RSR, MAP, GAR, GAR %, GARR."""

_NOTE = (
    "RSR@k: the part of the relevant actions that is selected, relevant being the actions of the gold trajectory that "
    "are valid in the step. MAP: mean average precision over the valid actions. GAR: rank of the gold action, 1 is the "
    "best; GAR %: in percent of the valid actions; GARR: its inverse. Equal scores share the mean of their ranks. "
    "Means, and ± standard deviations, over all steps. G_g and G_τ are the 50 most frequent gold actions of all "
    "training trajectories and of those of the same task. The paper's Guide is BERT-base on 3,442 training variations; "
    "its MAP should not depend on k."
)


def fill(gold: Path, folder: Path, out: Path, train: bool, line: CommandLine) -> None:
    """Judge a Guide, after training it where there is none, and write the table.

    Raises:
        ConfigurationError: no gold trajectories.
        CheckpointError: there is no Guide, and none is to be trained.
    """
    if not (folder / "guide.json").exists():
        if not train:
            raise CheckpointError(
                f"there is no Guide in {folder}: leave out --no-train, or name its folder with --guide"
            )
        guide_command.run(guide_command.Arguments(gold, folder), line)
    command = str(line)
    known, held_out = learnable(gold)
    by_task, overall = frequent_actions(known)
    found = {
        "G_g": set_metrics(lambda task: overall, held_out),
        "G_τ": set_metrics(lambda task: by_task.get(task, frozenset()), held_out),
        "Guide": guide_metrics(load_guide(folder).score, held_out, KS),
    }
    write_json(out / f"{ID}.json", _to_json(found, known, held_out, command))
    write_atomic(out / f"{ID}.md", _page(found, known, held_out, command))
    print(f"table: {out / ID}.md")


def set_metrics(chosen: Callable[[str], frozenset[str]], trajectories: Iterable[Trajectory]) -> GuideMetrics:
    """Evaluate a baseline that is a set of actions for each kind of task; membership is its score, 1 or 0."""

    def membership(trajectory: Trajectory) -> list[bool]:
        selected = chosen(trajectory.task)
        return [action in selected for action in trajectory.valid]

    return evaluate(membership, trajectories, {BASELINE: lambda scores: scores > 0}, ranked=False)


def frequent_actions(
    trajectories: Iterable[Trajectory], size: int = BASELINE
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Return the frequency baselines: the most frequent gold actions of each kind of task (G_τ), and of all (G_g).

    Of equally frequent ones the first of the alphabet are taken.
    """
    counts: dict[str, Counter[str]] = {}
    for trajectory in trajectories:
        played = (command for command, meant in zip(trajectory.commands, trajectory.meant, strict=True) if meant)
        counts.setdefault(trajectory.task, Counter()).update(played)
    total = sum(counts.values(), Counter[str]())
    return {task: _most(found, size) for task, found in counts.items()}, _most(total, size)


def _most(counts: Counter[str], size: int) -> frozenset[str]:
    return frozenset(sorted(counts, key=lambda action: (-counts[action], action))[:size])


def _page(found: Mapping[str, GuideMetrics], known: list[Trajectory], held_out: list[Trajectory], command: str) -> str:
    lines = []
    for (model, k), paper in PAPER.items():
        ours = _cells(found[model], k)
        lines.append((model, str(k), *(_beside(own, theirs) for own, theirs in zip(ours, paper, strict=True))))
    per_task = [
        (task, *(f"{found[model].by_task[task]:.3f}" for model in found if task in found[model].by_task))
        for task in dict.fromkeys(each.task for each in held_out)
    ]
    means = [np.mean(list(metrics.by_task.values())) for metrics in found.values()]
    per_task.append(("mean over tasks", *(f"{mean:.3f}" for mean in means)))
    caption = (
        f"{found['Guide'].steps:,} steps of {len(held_out)} validation variations; learnt from {len(known)} training "
        f"variations; on average {np.mean(_valid_counts(held_out)):,.0f} actions are valid. "
        f"In brackets the paper's. {_NOTE}"
    )
    return page(
        f"# {TITLE}",
        caption,
        table(("model", "k", "RSR@k", "MAP", "GAR", "GAR %", "GARR"), lines),
        "## RSR@50 of each task",
        table(("task", *found), per_task),
        f"Command: {code(command)}",
    )


def _cells(found: GuideMetrics, k: int) -> tuple[str, ...]:
    ranks = ("", "", "")
    if found.gar is not None and found.gar_percent is not None and found.garr is not None and k == KS[0]:
        pairs = ((found.gar, 1), (found.gar_percent, 1), (found.garr, 2))
        ranks = tuple(f"{mean:.{places}f} ± {std:.{places}f}" for (mean, std), places in pairs)
    return (f"{found.rsr[k]:.3f}", f"{found.map:.3f}" if k == BASELINE else "", *ranks)


def _beside(own: str, paper: str) -> str:
    return f"{own or '–'} ({paper})" if paper else own


def _valid_counts(trajectories: list[Trajectory]) -> list[int]:
    """Valid actions in each step."""
    counts = [np.zeros(len(each.commands) + 1, np.int64) for each in trajectories]
    for count, each in zip(counts, trajectories, strict=True):
        for spans in each.valid.values():
            np.add.at(count, list(spans[::2]), 1)
            np.add.at(count, list(spans[1::2]), -1)
    return [int(number) for count in counts for number in count.cumsum()[:-1]]


def _to_json(
    found: Mapping[str, GuideMetrics], known: list[Trajectory], held_out: list[Trajectory], command: str
) -> dict[str, Any]:
    return {
        "table": ID,
        "title": TITLE,
        "command": command,
        "training_variations": len(known),
        "validation_variations": len(held_out),
        "models": {name: asdict(metrics) for name, metrics in found.items()},
        "paper": {f"{model}, k={k}": values for (model, k), values in PAPER.items()},
    }
