"""Games as chats: `magrounding export-chats --env ma_rtfm --stage s1 --players oracle --out chats.jsonl`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from magrounding.cli.command import CommandLine
from magrounding.cli.game_arguments import LearningArguments, QuietArguments
from magrounding.cli.options import first_seed
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.extensions.language_models.chats import chats_of
from magrounding.extensions.language_models.prompts import REPLIES, Prompt
from magrounding.owner import new_file
from magrounding.progress import Display
from magrounding.registry import env_entry
from magrounding.storage import json_text, write_atomic
from magrounding.teams.lineup import Lineup
from magrounding.teams.match import ROWS, play_batch
from magrounding.teams.saved_games import ReplayActor, SavedEpisode, open_env, read_episodes, replayed
from magrounding.threads import plan_threads, using
from magrounding.training.recording import RECORDING_SEED
from magrounding.vector import VectorEnv


@dataclass(frozen=True, kw_only=True)
class Arguments(QuietArguments, LearningArguments):
    """Write games as chats, a line of JSON for each agent of a game, with the messages that a language model has."""

    env: str = ""
    """Environment id, e.g. ma_rtfm. (default: that of --saved)"""
    out: Path
    """File to write, e.g. chats.jsonl."""
    players: str = "oracle"
    """A player for each agent, separated by commas, or one for all of them, as of `magrounding match`."""
    saved: Path | None = None
    """Saved games of teams or people instead, as `match`, `play` and `serve` write them; they have their own
    environment, options and number. (default: none, games are played)"""
    won: bool = False
    """Write only games that were won."""
    prompt: str = "naive"
    """Template of the instructions in the first message, without games of others: naive, chain_of_thought or a file of
    one's own (.txt)."""
    reply: str = REPLIES[0]
    """Form of a move: marks (between <move> and </move>) or json."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play or read the games, write the file, say what is in it."""
    prompt, form = Prompt.load(arguments.prompt), check_choice("form of a reply", arguments.reply, REPLIES)
    if prompt.shows_games:
        raise ConfigurationError(f"the prompt {arguments.prompt} shows games itself: choose another for chats")
    with new_file(arguments.out, "the chats of"):
        vec, players, games, count = _games(arguments)
        lines, left_out = list[str](), 0
        with closing(vec), Display(quiet=arguments.quiet) as display, display.games("chats", count) as advance:
            for number, game in enumerate(games):
                if game.ended_by or (arguments.won and not game.won):
                    left_out += 1
                else:
                    lines += _lines(vec, game, players, prompt, form)
                advance(number + 1)
        if not lines:
            raise ConfigurationError("no game is left to write: none was played to its end, or none was won")
        write_atomic(arguments.out, "".join(lines))
    more = f", {left_out:,} games left out" if left_out else ""
    print(arguments.out if arguments.quiet else f"{arguments.out}: {len(lines):,} chats{more}")


def _lines(vec: VectorEnv, game: SavedEpisode, players: Sequence[str], prompt: Prompt, form: str) -> Iterator[str]:
    """Yield the line of each agent of a game, which is played again in a batch of one."""
    split = vec.options.get("split", env_entry(vec.id).options.get("split", ""))
    about = {"env": vec.id, "options": vec.options, "split": split, "seed": game.seed, "won": game.won}
    about |= {"prompt": f"{prompt.name} {prompt.version}", "prompt_hash": prompt.hash, "reply": form}
    instructions = prompt.fill("system", form)
    for agent, chat in enumerate(chats_of(vec, game.seed, ReplayActor([game]))):
        own = {"agent": agent, "player": players[agent], "return": chat.reward}
        yield json_text({**about, **own, "messages": chat.messages(instructions, form)}, compact=True) + "\n"


def _games(arguments: Arguments) -> tuple[VectorEnv, Sequence[str], Iterator[SavedEpisode], int]:
    """Return a batch of one, the players, the games, and their number; ConfigurationError for what cannot be played."""
    if arguments.saved is not None:
        known = ("out", "saved", "won", "prompt", "reply", "quiet")
        if arguments != Arguments(**{name: getattr(arguments, name) for name in known}):
            raise ConfigurationError("saved games have their own environment, players and options: leave those out")
        header, episodes = read_episodes(arguments.saved)
        vec = open_env(arguments.saved, header)
        checked = (episodes[number] for number in replayed(arguments.saved, header, episodes))
        return vec, header.players, checked, len(episodes)
    if not arguments.env:
        raise ConfigurationError("name an environment with --env, or a file of saved games with --saved")
    games, first = arguments.chosen_games(), first_seed(RECORDING_SEED, arguments.seed)
    lineup = Lineup.parse(arguments.players, games.spec.num_agents)
    if lineup.people:
        raise ConfigurationError("people play with `magrounding play` or `serve`; --saved takes their games")
    names = list(map(str, lineup.players))
    vec = games.make_vec(1)
    lineup.build_actor(vec, first)  # a player that cannot play is refused before any game
    return vec, names, _played(arguments, lineup, games, first), arguments.games


def _played(arguments: Arguments, lineup: Lineup, games: Game, first: int) -> Iterator[SavedEpisode]:
    """Play games in batches, and yield them in the order of their seeds."""
    rows = min(arguments.games, arguments.entry.evaluation.max_envs or ROWS)
    with using(plan_threads(1, rows)), closing(games.make_vec(rows)) as vec:
        for start in range(0, arguments.games, rows):
            yield from play_batch(lineup, vec, first + start)[: arguments.games - start]
