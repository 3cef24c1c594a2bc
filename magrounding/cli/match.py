"""Matches between line-ups: `magrounding match --env ma_rtfm --stage s2 --players script:moves.txt,oracle random`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from magrounding.agents.weights import versions
from magrounding.cli.command import REPEATABLE, CommandLine
from magrounding.cli.game_arguments import (
    ActionArguments,
    EvaluationArguments,
    LanguageModelArguments,
    QuietArguments,
    WorkerArguments,
)
from magrounding.cli.options import Paths, choose_workers, first_seed
from magrounding.errors import ConfigurationError
from magrounding.experiment.reports.match import check_replies, match_report, plot_match, to_json
from magrounding.experiment.rows import match_rows, write_rows
from magrounding.experiment.tables import say
from magrounding.progress import Display
from magrounding.schema import Count, Natural
from magrounding.storage import check_place, write_atomic, write_json
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import MATCH_SEED, play_match
from magrounding.threads import plan_threads, using

NAME = "match"
"""Name of the three files, before their endings."""
REFUSED, STOPPED = REPEATABLE, "stopped; the same command goes on with the match"


@dataclass(frozen=True, kw_only=True)
class Arguments(QuietArguments, WorkerArguments, LanguageModelArguments, ActionArguments, EvaluationArguments):
    """Compare line-ups of agents, oracles, scripts and random players, game by game on the same games."""

    players: tuple[str, ...]
    """Line-ups: a player for each agent, separated by commas, or one for all of them. A player is run:DIR (a trained
    run; run:DIR@STAGE for the weights of another stage), pretrained:NAME, oracle (or the simulator's own bot),
    oracle:NAME (another oracle of the environment), random, overlap (the text on offer most like the
    task), script:FILE, llm:NAME (a language model of --llm) or llm:MODEL@URL. Differences are to the first line-up."""
    out: Path | None = None
    """Folder for match.md, match.json, match.png, the games and the calls of language models. A match that was stopped
    goes on there. (default: runs/match-<env>-<stage>)"""
    paths: Paths = ()
    """Options of the games, after all flags, e.g. env.size=10. A game of RTFM is over after 80 steps unless
    env.max_cycles says otherwise, one of another world after its own limit."""
    games: Count = 200
    """Games of each line-up."""
    seed: Natural = 0
    """Seed of the games."""
    ask_facts: bool = False
    """Ask each language model one question about the manual when a game begins, where the environment lists its
    facts."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play, print the table, write the files."""
    greedy = arguments.greedy
    seed, games = first_seed(MATCH_SEED, arguments.seed), arguments.chosen_games()
    models, agents = arguments.language_models(ask_facts=arguments.ask_facts), games.spec.num_agents
    lineups = [Lineup.parse(text, agents, models) for text in arguments.players]
    if not lineups:
        raise ConfigurationError("a match needs at least one line-up: name players with --players")
    folder = arguments.out or Path("runs") / "-".join(filter(None, (NAME, games.id, arguments.named_stage)))
    check_place(folder / f"{NAME}.json")
    workers = choose_workers(arguments.workers, games)
    plan = plan_threads(1, arguments.games)
    with models, using(plan), Display(quiet=arguments.quiet) as display:
        results = play_match(games.id, games.options, lineups, arguments.games, folder, seed, greedy, workers, display)
    report = match_report(results, f"{NAME}.png", str(line))
    write_json(folder / f"{NAME}.json", to_json(results, str(line), versions()))
    write_rows(folder / f"{NAME}.md", match_rows(results), env=games.id, options=games.options, command=str(line))
    write_atomic(folder / f"{NAME}.png", plot_match(results))
    write_atomic(folder / f"{NAME}.md", report)
    say(f"{folder / NAME}.md" if arguments.quiet else f"{report}\nreport: {folder / NAME}.md")
    check_replies(results.games)
