"""Make word pieces of a world's texts: `magrounding pieces --env scienceworld --out pieces.json`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from magrounding.cli.command import CommandLine
from magrounding.cli.options import Paths, assignments, parse_env_options
from magrounding.envs.make import Game
from magrounding.errors import ConfigurationError, check_choice
from magrounding.extensions.lge.drrn.pieces import FIRST, train_pieces
from magrounding.owner import new_file
from magrounding.registry import env_entry
from magrounding.schema import MOST, Count, Natural
from magrounding.spec import CHOICES
from magrounding.storage import write_atomic
from magrounding.texts import content_keys
from magrounding.vector import VectorEnv
from magrounding.vocabulary import plain_text


@dataclass(frozen=True)
class Arguments:
    """Play training games at random, and train a vocabulary of word pieces on their texts."""

    env: str
    """Environment id, e.g. scienceworld."""
    out: Path
    """File to write, e.g. pieces.json: the option vocabulary of an agent."""
    stages: tuple[str, ...] = ()
    """Stages or tasks to play. (default: all)"""
    pieces: Annotated[int, Meta(ge=2 * FIRST, le=MOST)] = 8000
    """Rows of the table that the pieces are for, those for padding, unknown letters and the divider among them."""
    across_words: bool = False
    """Let a piece span several words, which makes texts shorter, but cuts a word differently in other company."""
    games: Count = 4
    """Games at once."""
    steps: Count = 30
    """Steps of each game in each stage."""
    seed: Natural = 0
    """Seed of the games."""
    paths: Paths = ()
    """Options of the environment, after all flags, e.g. env.max_cycles=80."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Play, train, write the file, say what is in it."""
    with new_file(arguments.out, "the training of"):
        entry = env_entry(arguments.env)
        more = parse_env_options(assignments(arguments.paths), entry, {entry.stage_option: "--stages"})
        games: dict[str, Game] = {}
        for stage in arguments.stages or entry.stages:
            check_choice(f"stage of {entry.id}", stage, entry.stages)
            games[stage] = each = Game.of(entry.id, {**entry.with_stage(stage), **more})
            if not each.spec.words or not each.spec.texts:
                raise ConfigurationError("this world has no texts whose words it says")
        found: dict[str, None] = {}
        for stage, each in games.items():
            with closing(each.make_vec(arguments.games)) as vec:
                found |= dict.fromkeys(texts_shown(vec, arguments.steps, arguments.seed))
            print(f"{stage or entry.id}: {len(found):,} texts", flush=True)
        pieces = train_pieces(found, arguments.pieces, across_words=arguments.across_words)
        write_atomic(arguments.out, pieces.to_json())
        print(f"{arguments.out}: {len(pieces) - FIRST:,} pieces of {len(found):,} texts")


def texts_shown(vec: VectorEnv, steps: int, seed: int) -> Iterator[str]:
    """Yield each distinct text, choices among them, of `steps` random steps of each episode; only legal actions."""
    spec = vec.spec
    rng, known = np.random.default_rng(seed), set[int]()
    observation, _ = vec.reset(seed=seed)
    for step in range(steps + 1):
        mask = observation["action_mask"] > 0
        for text in spec.texts:
            shown = observation[text.name]
            rows = shown[mask] if text.name == CHOICES else shown.reshape(-1, *text.shape)
            for key, row in zip(content_keys({text.name: rows}).tolist(), rows, strict=True):
                if key not in known:
                    known.add(key)
                    if sentence := plain_text(spec.words, row.ravel().tolist()):
                        yield sentence
        if step < steps:
            observation, *_ = vec.step(np.where(mask, rng.random(mask.shape), -1.0).argmax(-1))
