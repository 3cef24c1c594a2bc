"""Comparisons of finished runs: what their folders say, but for what the clock told them."""

import re
from pathlib import Path

from magrounding.experiment.config import read_config
from tests.experiment.tiny_runs import timeless


def check(ours: Path, theirs: Path) -> None:
    """AssertionError, with what differs, unless two finished runs say the same."""
    one, other = content(ours), content(theirs)
    assert one.keys() == other.keys(), one.keys() ^ other.keys()
    different = [name for name in other if one[name] != other[name]]
    assert different == [], {name: (one[name], other[name]) for name in different}


def content(run: Path) -> dict[str, object]:
    """Everything that a finished run's folder says, but for what the clock told it; files of others by their names."""
    found: dict[str, object] = {}
    for path in run.rglob("*"):
        if path.is_dir() or path.parent.name == "tensorboard":
            continue
        name = str(path.relative_to(run))
        if name == "report.md":
            results, budget, repeat = re.split("^## (?:Budget|How to repeat it)$", path.read_text(), flags=re.MULTILINE)
            rows = [row.rsplit("|", 3)[0] for row in budget.splitlines() if row.startswith("|")]  # without minutes
            found[name] = results, rows, repeat
        elif path.name == "metrics.jsonl":
            found[name] = timeless(path.parent)
        elif path.suffix == ".json" or path.name.startswith("agent_"):
            found[name] = path.read_bytes()
        else:
            found[name] = "there"
    settings = read_config(run)
    weights = [name for name in found if re.search(r"s\d/agent_\d.safetensors$", name)]
    assert len(weights) == 2 * len(settings.stages) * len(settings.seeds)
    return found
