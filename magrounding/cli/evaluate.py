"""Evaluate runs on games they have never met: `magrounding evaluate --run runs/a runs/b --out runs/a-b`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from magrounding.agents.weights import versions
from magrounding.cli.command import CommandLine, distinct_names
from magrounding.cli.game_arguments import DeviceArguments, LanguageModelArguments, QuietArguments
from magrounding.cli.options import Paths, assignments, choose_workers, names_of, parse_env_options
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.config import read_config
from magrounding.experiment.cross_play import cross_play, seed_pairs
from magrounding.experiment.reports.zero_shot import plot_zero_shot, tables, to_json, zero_shot_report
from magrounding.experiment.rows import learns, summary_rows, write_rows
from magrounding.experiment.stage import resolve_device
from magrounding.experiment.tables import say
from magrounding.experiment.zero_shot import EvaluatedRun, ZeroShot, open_runs, zero_shot
from magrounding.owner import owned
from magrounding.pretrained import PREFIX, find_run
from magrounding.progress import Display
from magrounding.schema import Count
from magrounding.storage import check_place, write_atomic, write_json
from magrounding.teams.evaluate import PLAYS
from magrounding.teams.lineup import CALLS_FILE, Lineup, keep_calls
from magrounding.threads import plan_threads, using

NAME = "zero_shot"
"""Name of the three files, before their endings."""


@dataclass(frozen=True)
class Arguments(LanguageModelArguments, QuietArguments, DeviceArguments):
    """Evaluate the teams of runs on evaluation sets, beside a random team and the oracle on the same games."""

    run: tuple[str, ...] = ()
    """Run folders (or pretrained:<name>, or hub:<owner>/<name> of a model hub). (default: none)"""
    pretrained: tuple[str, ...] = ()
    """Names of teams that come with the package, beside or instead of runs. (default: none)"""
    names: tuple[str, ...] = ()
    """Names of the runs, then of the pretrained teams. (default: their folders' names)"""
    splits: str | None = None
    """Evaluation sets separated by commas. (default: all of the environment's)"""
    episodes: Count = 1000
    """Games on each set."""
    paths: Paths = ()
    """Options of the games, after all flags, instead of the first run's, e.g. env.max_cycles=200."""
    seeds: str | None = None
    """Seeds of the runs, separated by commas. (default: all)"""
    stage: str | None = None
    """Stage whose weights and games are used. (default: the last one that all runs have)"""
    play: str = "both"
    """greedy (the most likely action), sampled (drawn) or both."""
    teammate: str | None = None
    """Cross-play: a run (or pretrained:<name>) whose agents also play in mixed teams with those of the other runs. If
    it is the only run, its own seeds are mixed. (default: no cross-play)"""
    players: tuple[str, ...] = ()
    """More line-ups that play the same games, as of `magrounding match`, such as llm:NAME or llm:NAME,oracle. (default:
    none)"""
    ask_facts: bool = False
    """Ask each language model one question about the manual when a game begins, where the environment lists its
    facts."""
    out: Path | None = None
    """Folder for zero_shot.json, zero_shot.md, zero_shot.png and the calls of language models; an evaluation that was
    stopped asks for no reply again. (default: no files)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play, print the tables, write the files."""
    out = arguments.out
    if arguments.quiet and out is None:
        raise ConfigurationError("--quiet prints nothing but where the report is: name a folder for it with --out")
    if out is not None:
        check_place(out / f"{NAME}.json")
    with nullcontext() if out is None else owned(out, "the evaluation"):
        results = evaluate_runs(arguments)
        if not arguments.quiet:
            say(tables(results))
        if out is not None:
            command = str(line)
            write_json(out / f"{NAME}.json", to_json(results, command, versions()))
            write_atomic(out / f"{NAME}.png", plot_zero_shot(results))
            numbers = summary_rows(results.over_seeds, results.measure)
            write_rows(out / f"{NAME}.md", numbers, **learns(results.runs[0].settings), command=command)
            write_atomic(out / f"{NAME}.md", zero_shot_report(results, f"{NAME}.png", command))
            print(f"{out / NAME}.md" if arguments.quiet else f"\nreport: {out / NAME}.md")


def evaluate_runs(arguments: Arguments) -> ZeroShot:
    """Play all games; NoReply where a language model has given up all games of a set."""
    plays = PLAYS if arguments.play == "both" else (check_choice("way to --play", arguments.play, (*PLAYS, "both")),)
    sources = [*arguments.run, *(PREFIX + name.removeprefix(PREFIX) for name in arguments.pretrained)]
    if not sources:
        raise ConfigurationError("nothing to evaluate: name run folders with --run, or a team with --pretrained")
    folders = dict(zip(distinct_names(sources, arguments.names), map(find_run, sources), strict=True))
    models = arguments.language_models(ask_facts=arguments.ask_facts)
    mate = None if arguments.teammate is None else _with_teammate(folders, arguments.teammate)
    settings = read_config(next(iter(folders.values())))
    # What makes every evaluation set what it is is not for the asking.
    made_by = set.intersection(*(set(options) for options in settings.entry.evaluation.sets.values()))
    reserved = {"agents": "the training of the runs", **dict.fromkeys(made_by, "--splits")}
    options = parse_env_options(assignments(arguments.paths), settings.entry, reserved)
    device = resolve_device(arguments.device)
    threads = plan_threads(settings.agents, arguments.episodes, threads=arguments.threads, cuda=device.type == "cuda")
    lineups = [Lineup.parse(text, settings.agents, models) for text in arguments.players]
    if any(lineup.people for lineup in lineups):
        raise ConfigurationError("an evaluation has no person at it: people play with `magrounding play`")
    if arguments.out is not None:
        keep_calls((player for lineup in lineups for player in lineup.players), arguments.out / CALLS_FILE)
    with models, using(threads), Display(quiet=arguments.quiet) as display:
        runs = open_runs(folders, arguments.stage, names_of("--seeds", arguments.seeds), device)
        sets = names_of("--splits", arguments.splits)
        runs = [replace(_in_games(each, options, arguments.workers, sets), display=display) for each in runs]
        other = next((run for run in runs if run.name == mate), None)
        met = [run for run in runs if run is not other] or runs  # with itself where there is no other
        pairs = [(one, other, seed_pairs(one, other)) for one in met if other is not None]
        results = zero_shot(runs, sets, arguments.episodes, plays, lineups)
        together = [score for pair in pairs for score in cross_play(*pair, results.sets, arguments.episodes, plays)]
        return replace(results, together=together)


def _in_games(
    run: EvaluatedRun, options: Mapping[str, Any], workers: int | str | None, sets: Sequence[str] | None
) -> EvaluatedRun:
    """The run in games with other options; ConfigurationError where its networks cannot look at them."""
    changed, entry = replace(run, games={**run.games, **options}), run.settings.entry
    known = entry.evaluation.sets_of(run.stage)
    first = check_choice(f"evaluation set of {entry.id}", next(iter(sets or known)), known)
    game = changed.game(first)  # of a set that is played: a corpus need not have others
    changed = changed.reading(game, f"games with {dict(options)} show: leave out env.NAME=VALUE")
    return replace(changed, settings=replace(run.settings, workers=choose_workers(workers, game)))


def _with_teammate(folders: dict[str, Path], teammate: str) -> str:
    """The name of the teammate's run, which joins the runs if it is not among them."""
    folder = find_run(teammate)
    for name, known in folders.items():
        if known.resolve() == folder.resolve():
            return name
    name = folder.name if folder.name not in folders else teammate
    folders[name] = folder
    return name
