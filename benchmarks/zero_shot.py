"""Evaluate a run on games it has never met: `python -m benchmarks.zero_shot --run runs/… --splits eval,eval_new`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import tyro

from benchmarks.command import run_command
from magrounding.errors import ConfigurationError
from magrounding.evaluation.evaluate import PLAYS
from magrounding.evaluation.report import table
from magrounding.evaluation.zero_shot import ZeroShot, zero_shot
from magrounding.pretrained import find_run
from magrounding.storage import write_json
from magrounding.threads import plan_threads, using
from magrounding.training.device import resolve_device
from magrounding.training.settings import read_settings


@dataclass(frozen=True)
class Arguments:
    """Let the teams of a run play evaluation sets, beside a random team and the oracle on the same games."""

    run: str
    """Run folder, or pretrained:<name>."""
    splits: str | None = None
    """Evaluation sets separated by commas; all of the environment's by default."""
    episodes: int = 1000
    """Games on each set."""
    stage: str | None = None
    """Whose weights and whose games; the run's last stage by default."""
    device: str = "auto"
    """auto, cpu or cuda."""
    json: Path | None = None
    """File for the numbers."""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = tyro.cli(Arguments, prog="python -m benchmarks.zero_shot")
    return run_command(lambda: report(arguments))


def report(arguments: Arguments) -> None:
    """Play, print the table, write the JSON."""
    if arguments.episodes < 1:
        raise ConfigurationError(f"--episodes must be positive, got {arguments.episodes}")
    device = resolve_device(arguments.device)
    folder = find_run(arguments.run)
    settings = read_settings(folder)
    sets = tuple(settings.entry.evaluation_sets) if arguments.splits is None else tuple(arguments.splits.split(","))
    with using(plan_threads(1, arguments.episodes, cuda=device.type == "cuda")):
        results = zero_shot(folder, settings, sets, arguments.episodes, arguments.stage, str(device))
    rows = [_row(result, play) for result in results for play in PLAYS]
    print(table(("set", "play", "win rate", "std", "IQM", "95 % interval", "random", "oracle"), rows))
    if arguments.json is not None:
        content = {"run": settings.to_dict(), "episodes": arguments.episodes, "results": [r.to_dict() for r in results]}
        write_json(arguments.json, content)


def _row(result: ZeroShot, play: str) -> tuple[str, ...]:
    rate = result.win_rate[play]
    others = (
        f"{result.baselines[who]['win_rate']:.3f}" if who in result.baselines else "–" for who in ("random", "oracle")
    )
    interval = f"[{rate.low:.3f}, {rate.high:.3f}]" if rate.seeds > 1 else "–"
    return (result.evaluation_set, play, f"{rate.mean:.3f}", f"{rate.std:.3f}", f"{rate.iqm:.3f}", interval, *others)


if __name__ == "__main__":
    sys.exit(main())
