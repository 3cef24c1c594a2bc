"""Watch a trained team play a game: `magrounding watch --run runs/quick --out game.gif`, or saved games again."""

from __future__ import annotations

import inspect
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import tyro

from magrounding.agents.policy import WORD_ATTENTION
from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import ActionArguments, QuietArguments
from magrounding.cli.options import Paths, assignments, parse_env_options
from magrounding.cli.replay import actions_in_words, check_number, ending, render_mode, show_film
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.config import read_config
from magrounding.pretrained import PREFIX, find_run
from magrounding.registry import service
from magrounding.schema import Count, Natural
from magrounding.storage import check_place
from magrounding.teams.film import ENDINGS, beside_words, picture_of
from magrounding.teams.lineup import RUN, Lineup, PlayerSpec
from magrounding.teams.loading import load_team
from magrounding.teams.saved_games import SavedLineup, read_episodes
from magrounding.teams.session import Session
from magrounding.teams.team import Team, TeamMemory
from magrounding.text_view import MANUAL
from magrounding.threads import ThreadPlan, using

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv


@dataclass(frozen=True, kw_only=True)
class Arguments(QuietArguments, ActionArguments):
    """Let a trained team play one game, and show it and what each agent takes for itself; or show saved games."""

    file: Annotated[Path | None, tyro.conf.Positional] = None
    """Saved games, of `play` or a match, to go through on the terminal, forwards and backwards (extra `play`). For a
    film of one, or to check them all, there is `magrounding replay`. (default: none)"""
    run: str | None = None
    """A run's folder, pretrained:<name>, or hub:<owner>/<name> of a model hub. (default: none)"""
    terminal: bool = False
    """Go through the run's game on the terminal, forwards and backwards, and see what each agent goes by (extra
    `play`)."""
    out: Path | None = None
    """A film (.gif, or .mp4 with the extra `play`), or a sheet of its pictures (.png) of at most 2,000 × 2,000 pixels.
    (default: printed as text)"""
    stage: str | None = None
    """Stage, and the team trained on it. (default: the run's last)"""
    trained_seed: int | None = None
    """Seed of the run whose team plays. (default: the first)"""
    attention: bool = False
    """Show beside the map how much each layer, and the goal's query, attends to each word of the manual (txt2π, what
    is built on it, and SIR)."""
    split: str | None = None
    """Evaluation set of the game, e.g. eval_10x10. (default: eval, or what the environment has in its place)"""
    paths: Paths = ()
    """Options of the game, after all flags, instead of the run's, e.g. env.max_cycles=200."""
    game: Natural = 0
    """Seed of the game; of saved games its number, counted from 0."""
    milliseconds: Count = 600
    """Duration of a step in a film, or on the terminal."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play and show."""
    if (arguments.run is None) == (arguments.file is None):
        raise ConfigurationError("name a file of saved games, or a run with --run")
    if (arguments.file is not None or arguments.terminal) and (arguments.out is not None or arguments.quiet):
        raise ConfigurationError("a game on the terminal makes no file: leave out --out and --quiet")
    if arguments.out is not None:
        check_choice("ending of --out", arguments.out.suffix.lower(), ENDINGS)
        check_place(arguments.out)
    if (arguments.quiet or arguments.attention) and arguments.out is None:
        raise ConfigurationError("--quiet and --attention are for pictures: name a file for them with --out")
    with using(ThreadPlan()):
        if arguments.file is not None:
            _open_saved(arguments, arguments.file)
        elif arguments.run is not None:
            _watch_run(arguments, arguments.run)


def _open_saved(arguments: Arguments, path: Path) -> None:
    terminal = service("terminal")()
    header, episodes = read_episodes(path)
    check_number(path, episodes, arguments.game)
    lineup = SavedLineup(path, header, episodes, arguments.game)
    session = Session(header.env, header.options, lineup, episodes[arguments.game].seed)
    _show_on(terminal, session, arguments)


def _watch_run(arguments: Arguments, run: str) -> None:
    terminal = service("terminal")() if arguments.terminal else None
    plan = read_config(find_run(run)).resolve()
    settings, entry = plan.config, plan.entry
    trained = arguments.stage or settings.stages[-1]
    stage = plan.stages[check_choice(f"stage of {run}", trained.split("/")[0], settings.stages)]
    sets = entry.evaluation.sets_of(stage.name)
    games = check_choice("split", arguments.split or entry.evaluation.held_out_set(stage.name), tuple(sets))
    elsewhere = {"agents": "the training of the run", **dict.fromkeys(sets[games], "--split")}
    asked = parse_env_options(assignments(arguments.paths), entry, elsewhere)
    game = stage.sets[games].but(**asked)
    team = load_team(run, arguments.trained_seed, trained).for_games(game)
    if not team.spec.reads_alike(game.spec):
        raise ConfigurationError(f"the team was trained to read and see other things than a game with {asked} shows")
    if terminal is not None:
        player = replace(PlayerSpec.parse(run if run.startswith(PREFIX) else f"{RUN}:{run}"), actor=team)
        lineup = Lineup((player,) * team.num_agents, str(player))
        _show_on(terminal, Session(settings.env, game.options, lineup, arguments.game, arguments.greedy), arguments)
        return
    with closing(game.make(render_mode(game, arguments.out))) as env:
        frames, moves, won = play_game(team, env, arguments.game, greedy=arguments.greedy, words=arguments.attention)
    end = ending(won, len(moves))
    show_film(
        frames, moves, end, arguments.out, arguments.milliseconds, quiet=arguments.quiet, unscaled=arguments.attention
    )


def _show_on(terminal: Any, session: Session, arguments: Arguments) -> None:
    with closing(session):
        terminal(session, pause=arguments.milliseconds / 1000, paused=True).run()


def play_game(
    team: Team, env: ParallelEnv, seed: int, *, greedy: bool, words: bool = False
) -> tuple[list[Any], list[str], bool]:
    """Play an episode; return the picture before each step and at the end, the moves, and whether it was won.

    With `words` the agents' attention to them is in the pictures; ConfigurationError for networks without any.
    """
    seen, infos = env.reset(seed=seed)
    memory, frames, moves = team.initial_memory(1), [], []
    while env.agents:
        actions, memory = team.act(seen, memory, infos if frames else None, greedy=greedy, explain=True)
        frames.append(_look(team, memory, env, seen, words))
        moves.append(actions_in_words(team.spec, seen, actions))
        seen, _, _, _, infos = env.step(actions)
    frames.append(_look(team, memory, env, seen, words))
    return frames, moves, any(info.get("won", False) for info in infos.values())


def _claims(team: Team, memory: TeamMemory, env: ParallelEnv) -> np.ndarray | None:
    """[n, H, W], see `Team.marks`; the dead claim nothing. None where nothing is claimed, or nothing can show it."""
    marks = team.marks(memory) if "marks" in inspect.signature(env.render).parameters else None
    return None if marks is None else np.where([[[agent in env.agents]] for agent in env.possible_agents], marks[0], -1)


def _look(team: Team, memory: TeamMemory, env: ParallelEnv, seen: Any, words: bool) -> Any:
    """Return the picture of a moment, with what living agents claim and, if asked for, their attention to words."""
    picture = picture_of(env, _claims(team, memory, env))
    if not words:
        return picture
    reports = zip(env.possible_agents, team.aux(memory), strict=True)
    attention = {name: of[WORD_ATTENTION][0] * (name in env.agents) for name, of in reports if WORD_ATTENTION in of}
    if not attention or not team.spec[MANUAL].shared:
        raise ConfigurationError(
            "--attention is for networks that attend to words (txt2π, what is built on it, and SIR), and for a manual "
            "that all agents read"
        )
    manual = next(iter(seen.values()))[MANUAL]
    return beside_words(picture, [*(team.spec.words[k] for k in manual[manual > 0]), "(end)"], attention)
