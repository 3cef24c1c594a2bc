"""Make word pieces of a world's texts: `magrounding pieces --env scienceworld --out pieces.json`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from magrounding.agents.drrn.pieces import FIRST, train_pieces
from magrounding.cli.command import CommandLine, derived, run_command
from magrounding.cli.options import chosen_elsewhere, configure, parse_env_options
from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError, choose
from magrounding.play.corpus import texts_shown
from magrounding.registry import env_entry
from magrounding.storage import check_place, write_atomic


@dataclass(frozen=True)
class Arguments:
    """Play training games at random, and train a vocabulary of word pieces on their texts."""

    env: str
    """Environment id, e.g. scienceworld."""
    out: Path
    """File to write, e.g. pieces.json: the option vocabulary of an agent."""
    stages: tuple[str, ...] = derived("all", ())
    """Stages or tasks to play."""
    pieces: int = 8000
    """Rows of the table that the pieces are for, those for padding, unknown letters and the divider among them."""
    across_words: bool = False
    """A piece may be several words, which makes texts shorter, and one that is cut differently where they differ."""
    games: int = 4
    """Games at once."""
    steps: int = 30
    """Steps of each, in each stage."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of the environment, name=value; may be repeated, or several separated by commas."""
    seed: int = 0
    """Other seeds play other games."""


def main(line: CommandLine) -> int:
    """Run the command and return its exit code."""
    arguments = line.parse(Arguments)
    return run_command(lambda: make_pieces(arguments))


def make_pieces(arguments: Arguments) -> None:
    """Play, train, write the file, say what is in it."""
    if arguments.out.exists():
        raise CheckpointError(f"{arguments.out} exists already: name another file with --out")
    for name, least in (("pieces", 2 * FIRST), ("games", 1), ("steps", 1)):
        if getattr(arguments, name) < least:
            raise ConfigurationError(f"--{name} is {least} or more, got {getattr(arguments, name)}")
    entry = env_entry(arguments.env)
    more = parse_env_options(arguments.env_option, entry, chosen_elsewhere(entry, "--stages"))
    stages = [choose(f"stage of {entry.id}", stage, entry.stages) for stage in arguments.stages or entry.stages]
    for stage in stages:
        configure(entry, {**entry.with_stage(stage), **more})
    check_place(arguments.out)
    found: dict[str, None] = {}
    for stage in stages:
        vec = make_vec(entry.id, arguments.games, **entry.with_stage(stage), **more)
        try:
            found |= dict.fromkeys(texts_shown(vec, arguments.steps, arguments.seed))
        finally:
            vec.close()
        print(f"{stage or entry.id}: {len(found):,} texts", flush=True)
    pieces = train_pieces(found, arguments.pieces, across_words=arguments.across_words)
    write_atomic(arguments.out, pieces.to_json())
    print(f"{arguments.out}: {len(pieces) - FIRST:,} pieces of {len(found):,} texts")
