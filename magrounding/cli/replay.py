"""Saved games again: `magrounding replay runs/match-ma_rtfm-s2/games_0.jsonl --game 3 --out game.gif`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import tyro

from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import QuietArguments
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.progress import Display
from magrounding.registry import is_simulator
from magrounding.schema import Count, Natural
from magrounding.spec import EnvSpec
from magrounding.storage import check_place, write_atomic
from magrounding.teams.film import ENDINGS, film, page, picture_of
from magrounding.teams.saved_games import Header, SavedEpisode, actions_of, read_episodes, replayed
from magrounding.text_view import action_name
from magrounding.threads import ThreadPlan, using
from magrounding.vector import Observation

PAGE = ".html"
_RULES = ("task", "goal", "manual")
"""Texts that hold for the whole episode."""


@dataclass(frozen=True)
class Arguments(QuietArguments):
    """Play saved games again, refuse those that now go another way, and show one."""

    file: Annotated[Path, tyro.conf.Positional]
    """The saved games, as a match writes them."""
    game: Natural | None = None
    """Number of the game to show, counted from 0. (default: all are played again, none is shown)"""
    out: Path | None = None
    """A film (.gif, or .mp4 with the extra `play`), a sheet of pictures (.png) or a page with a slider (.html) of the
    game. (default: printed as text)"""
    milliseconds: Count = 600
    """Duration of a step in a film."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Check, and show."""
    if arguments.out is not None:
        check_choice("ending of --out", arguments.out.suffix.lower(), (*ENDINGS, PAGE))
        check_place(arguments.out)
        if arguments.game is None:
            raise ConfigurationError("--out shows one game: name it with --game")
    header, episodes = read_episodes(arguments.file)
    with using(ThreadPlan()):
        if arguments.game is None:
            _check_all(arguments, header, episodes)
        else:
            check_number(arguments.file, episodes, arguments.game)
            list(replayed(arguments.file, header, episodes, [arguments.game]))
            _show(arguments, header, episodes[arguments.game])


def check_number(file: Path, episodes: Sequence[SavedEpisode], number: int) -> None:
    """Raise ConfigurationError where a file has no game of this number."""
    if number >= len(episodes):
        raise ConfigurationError(f"{file} has games 0 to {len(episodes) - 1}, got {number}")


def _check_all(arguments: Arguments, header: Header, episodes: list[SavedEpisode]) -> None:
    with Display(quiet=arguments.quiet) as display, display.games("playing again", len(episodes)) as show_progress:
        for number in replayed(arguments.file, header, episodes):
            show_progress(number + 1)
    if not arguments.quiet:
        won = sum(episode.won for episode in episodes) / len(episodes)
        games = f"{len(episodes):,} games of {header.env} by {','.join(header.players)}"
        print(f"{arguments.file}: {games}, wins {won:.1%}; all go as they did")


def _show(arguments: Arguments, header: Header, episode: SavedEpisode) -> None:
    end = ending(episode.won, episode.length)
    games = Game.of(header.env, header.options)
    spec = games.spec
    with closing(games.make(render_mode(games, arguments.out))) as env:
        seen, infos = env.reset(seed=episode.seed)
        texts_of = [info.get("text", {}) for info in infos.values()]
        manual = zip(*(text.get("manual", ()) for text in texts_of), strict=True)  # agents may each read a part of it
        rules = {**texts_of[0], "manual": list(map(max, manual))}
        frames, texts = [], []
        for actions in episode.actions:
            chosen = actions_of(env, actions)
            frames.append(picture_of(env))
            texts.append(actions_in_words(spec, seen, chosen, header.players))
            seen, *_ = env.step(chosen)
        frames.append(picture_of(env))
        texts.append("won" if episode.won else "lost")
    if arguments.out is None or arguments.out.suffix.lower() != PAGE:
        show_film(frames, texts[:-1], end, arguments.out, arguments.milliseconds, quiet=arguments.quiet)
        return
    lines = [f"{name}: {_words(rules[name])}" for name in _RULES if rules.get(name)]
    about = "\n".join([*lines, f"text: {header.source}"] if header.source else lines)
    title = f"{header.env}, seed {episode.seed}: {end}"
    write_atomic(arguments.out, page(title, frames, texts, about, arguments.milliseconds))
    print(arguments.out if arguments.quiet else f"{arguments.out}: {end}")


def render_mode(games: Game, out: Path | None) -> str:
    """Return the render mode of a film, or of a game that is printed: of a world the whole map, with agents' claims."""
    return "rgb_array" if out is not None else "ansi" if is_simulator(games.config) else "ansi_full"


def ending(won: bool, steps: int) -> str:
    """Return how a game ended, in words."""
    return f"{'won' if won else 'lost'} after {steps} step{'s' * (steps != 1)}"


def show_film(
    frames: Sequence[Any],
    moves: Sequence[str],
    end: str,
    out: Path | None,
    milliseconds: int,
    *,
    quiet: bool,
    unscaled: bool = False,
) -> None:
    """Print the frames of a game and the moves between them, or write a film of them, and say how it ended.

    With `unscaled` frames keep their size on a sheet.
    """
    if out is None:
        print(*_in_text(frames, moves), f"The game is {end}.", sep="\n\n")
        return
    write_atomic(out, film(frames, out.suffix.lower(), milliseconds, unscaled=unscaled))
    print(out if quiet else f"{out}: {end}")


def _in_text(frames: Sequence[Any], moves: Sequence[str]) -> Iterator[str]:
    """Yield what stays the same throughout a game, such as its manual, once; then what changes, and the moves.

    Below the name of an agent nothing is taken out: it would no longer be clear whose it is.
    """
    parts = [str(frame).split("\n\n") for frame in frames]
    common = takewhile(lambda part: not part.startswith("AGENT "), parts[0])
    same = [part for part in common if "\n" in part and all(part in each for each in parts)]
    yield from same
    before: list[str] = []
    for each, move in zip(parts, [*moves, ""], strict=True):
        now = [part for part in each if part not in same]
        yield from (*(now if now != before else ()), *filter(None, [move]))
        before = now


def actions_in_words(
    spec: EnvSpec, seen: Mapping[str, Observation], chosen: Mapping[str, int], players: Sequence[str] = ()
) -> str:
    """Return a line for the action of each agent, given what it sees."""
    who = {agent: f" ({players[int(agent.rpartition('_')[2])]})" if players else "" for agent in chosen}
    return "\n".join(f"{agent}{who[agent]}: {action_name(spec, seen[agent], chosen[agent])}" for agent in chosen)


def _words(text: Any) -> str:
    return text if isinstance(text, str) else "\n  ".join(["", *text])
