"""Play with agents at the terminal: `magrounding play --env ma_rtfm --stage s2 --players human,oracle`."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import ActionArguments, EvaluationArguments, LanguageModelArguments
from magrounding.errors import needed
from magrounding.owner import owned
from magrounding.schema import Natural, Positive
from magrounding.storage import check_place
from magrounding.teams.lineup import CALLS_FILE, Lineup, keep_calls
from magrounding.teams.saved_games import EpisodeWriter
from magrounding.teams.session import Session
from magrounding.threads import ThreadPlan, using

if TYPE_CHECKING:
    from magrounding.extensions.people.terminal import Terminal


@dataclass(frozen=True, kw_only=True)
class Arguments(LanguageModelArguments, ActionArguments, EvaluationArguments):
    """Play games at this terminal, together with agents, or watch agents play."""

    players: str = "human"
    """A player for each agent, separated by commas, or one for all of them: human, run:DIR, run:DIR@STAGE,
    pretrained:NAME, oracle (or the simulator's own bot), oracle:NAME (another oracle of the environment),
    random, overlap (the text on offer most like the task), script:FILE, llm:NAME (a language model of --llm) or
    llm:MODEL@URL."""
    seed: Natural = 0
    """Seed of the first game."""
    seconds: Positive = 0.5
    """Seconds between two steps where no person plays."""
    out: Path | None = None
    """File to which games are appended when they are over; `magrounding replay` shows them, and agents learn from them
    (`record --player saved:FILE`). Calls of language models go to a file beside it (.calls.jsonl). (default: none)"""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Open the game on the terminal."""
    greedy = arguments.greedy
    games, models = arguments.chosen_games(), arguments.language_models()
    lineup = Lineup.parse(arguments.players, games.spec.num_agents, models)
    terminal = find_terminal()
    if arguments.out is not None:
        check_place(arguments.out)
        keep_calls(lineup.players, arguments.out.with_suffix(f".{CALLS_FILE}"), resume=False)
    own = (
        nullcontext() if arguments.out is None else owned(arguments.out, f"the play of {arguments.out.name}", file=True)
    )
    with (
        own,
        using(ThreadPlan()),
        models,
        closing(Session(games.id, games.options, lineup, arguments.seed, greedy)) as session,
    ):
        file = None if arguments.out is None else EpisodeWriter(arguments.out, session.header)
        before = 0 if file is None else len(file.episodes)
        terminal(session, lambda played: file and file.write([played.saved()]), arguments.seconds).run()
    if file is not None:
        kept = len(file.episodes) - before
        played = f"{arguments.out}: {kept} game{'s' if kept > 1 else ''} more"
        print(played if kept else "no game was played to its end, so none is kept")


def find_terminal() -> type[Terminal]:
    """The terminal's class; MissingExtra where textual is not installed."""
    with needed("playing at the terminal", "play"):
        from magrounding.extensions.people.terminal import Terminal
    return Terminal
