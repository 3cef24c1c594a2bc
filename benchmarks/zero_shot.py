"""Evaluate runs on games they have never met: `python -m benchmarks.zero_shot --run runs/a runs/b --out runs/a-b`."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import tyro

from benchmarks.command import distinct_names, run_command
from magrounding.agents.weights import versions
from magrounding.errors import ConfigurationError, choose
from magrounding.evaluation.cross_play import cross_play, seed_pairs
from magrounding.evaluation.evaluate import PLAYS
from magrounding.evaluation.zero_shot import Contender, ZeroShot, open_runs, zero_shot
from magrounding.evaluation.zero_shot_plot import plot_zero_shot
from magrounding.evaluation.zero_shot_report import tables, to_json, zero_shot_report
from magrounding.pretrained import PREFIX, find_run
from magrounding.storage import write_atomic, write_json
from magrounding.threads import plan_threads, using
from magrounding.training.device import resolve_device

NAME = "zero_shot"
"""Of the three files, before their endings."""


@dataclass(frozen=True)
class Arguments:
    """Let the teams of runs play evaluation sets, beside a random team and the oracle on the same games."""

    run: tuple[str, ...] = ()
    """Run folders (or pretrained:<name>)."""
    pretrained: tuple[str, ...] = ()
    """Names of teams that come with the package, beside or instead of runs."""
    names: tuple[str, ...] = ()
    """What to call the runs, then the pretrained teams; their folders' names by default."""
    splits: str | None = None
    """Evaluation sets separated by commas; all of the environment's by default."""
    episodes: int = 1000
    """Games on each set."""
    seeds: str | None = None
    """Which of the runs' seeds, separated by commas; all by default."""
    stage: str | None = None
    """Whose weights and whose games; the last stage that all runs have by default."""
    play: str = "both"
    """greedy (the most likely action), sampled (drawn) or both."""
    teammate: str | None = None
    """A run (or pretrained:<name>) whose agents also play in teams with those of the others; alone, its own seeds."""
    out: Path | None = None
    """Folder for zero_shot.json, zero_shot.md and zero_shot.png."""
    device: str = "auto"
    """auto, cpu or cuda."""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = tyro.cli(Arguments, prog="python -m benchmarks.zero_shot")
    return run_command(lambda: report(arguments))


def report(arguments: Arguments) -> None:
    """Play, print the tables, write the files."""
    results = evaluate_runs(arguments)
    print(tables(results))
    if arguments.out is not None:
        command = shlex.join(["python", "-m", "benchmarks.zero_shot", *sys.argv[1:]])
        write_json(arguments.out / f"{NAME}.json", to_json(results, command, versions()))
        write_atomic(arguments.out / f"{NAME}.png", plot_zero_shot(results))
        write_atomic(arguments.out / f"{NAME}.md", zero_shot_report(results, f"{NAME}.png", command))
        print(f"\nreport: {arguments.out / NAME}.md")


def evaluate_runs(arguments: Arguments) -> ZeroShot:
    """Play all games."""
    if arguments.episodes < 1:
        raise ConfigurationError(f"--episodes must be positive, got {arguments.episodes}")
    plays = PLAYS if arguments.play == "both" else (choose("way to --play", arguments.play, (*PLAYS, "both")),)
    sources = [*arguments.run, *(PREFIX + name for name in arguments.pretrained)]
    if not sources:
        raise ConfigurationError("nothing to evaluate: name run folders with --run, or a team with --pretrained")
    folders = dict(zip(distinct_names(sources, arguments.names), map(find_run, sources), strict=True))
    mate = None if arguments.teammate is None else _with_teammate(folders, arguments.teammate)
    device = resolve_device(arguments.device)
    with using(plan_threads(1, arguments.episodes, cuda=device.type == "cuda")):
        contenders = open_runs(folders, arguments.stage, _items("--seeds", arguments.seeds), device)
        pairs = (
            [] if mate is None else [(one, other, seed_pairs(one, other)) for one, other in _meetings(contenders, mate)]
        )
        results = zero_shot(contenders, _items("--splits", arguments.splits), arguments.episodes, plays)
        together = [score for pair in pairs for score in cross_play(*pair, results.sets, arguments.episodes, plays)]
        return replace(results, together=together)


def _with_teammate(folders: dict[str, Path], teammate: str) -> str:
    """The name of the teammate's run, which joins the runs if it is not among them."""
    folder = find_run(teammate)
    for name, known in folders.items():
        if known.resolve() == folder.resolve():
            return name
    name = folder.name if folder.name not in folders else teammate
    folders[name] = folder
    return name


def _meetings(contenders: list[Contender], mate: str) -> list[tuple[Contender, Contender]]:
    """Everybody else with the teammate; the teammate with itself where there is nobody else."""
    other = next(who for who in contenders if who.name == mate)
    return [(one, other) for one in contenders if one is not other] or [(other, other)]


def _items(flag: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ConfigurationError(f"{flag} takes names separated by commas, got {text!r}")
    return items


if __name__ == "__main__":
    sys.exit(main())
