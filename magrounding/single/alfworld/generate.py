"""The command that makes games: `python -m magrounding.single.alfworld.generate --out FOLDER`.

It writes a folder for each game, as ALFWorld's download has it, below `train`, `valid` and `test`; the option
`games=FOLDER` of the environment plays them. `--pack FILE` writes the scenes alone, the form in which the package ships
its own, which are `--train 240 --valid 48 --test 96 --seed 0`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from magrounding.errors import CheckpointError, MagroundingError
from magrounding.output import show_anything
from magrounding.single.alfworld.engine import Engine
from magrounding.single.alfworld.games import save_scenes
from magrounding.single.alfworld.problem import GAME_FILE, TASK_FILE, game_of, task_of
from magrounding.single.alfworld.scenes import SPLITS, Scene, draw_scenes
from magrounding.storage import json_text, user_path

COUNTS = {"train": 240, "valid": 48, "test": 96}
"""Scenes of the package, by split."""


def write_games(out: Path, scenes: dict[str, list[Scene]]) -> int:
    """Write the scenes as games; how many.

    Raises:
        CheckpointError: the folder is there already.
        MissingExtra: alfworld is not installed.
    """
    if out.exists():
        raise CheckpointError(f"{out} is there already: name another folder, or move that one away")
    written = 0
    for split, some in scenes.items():
        for number, scene in enumerate(some):
            game, folder = game_of(scene), out / split / scene.name / f"trial_{number:05d}"
            folder.mkdir(parents=True)
            (folder / GAME_FILE).write_text(json_text(game), encoding="utf-8")
            (folder / TASK_FILE).write_text(json_text(task_of(scene)), encoding="utf-8")
            written += 1
    return written


def solvable(scene: Scene, engine: Engine) -> bool:
    """Whether the planner's commands win a scene."""
    won = engine.start(game_of(scene)).won
    for command in engine.plan():
        won = engine.step(command).won
    return won


def main(arguments: list[str] | None = None) -> int:
    """Make games as the command line says."""
    show_anything()
    parser = argparse.ArgumentParser(prog="python -m magrounding.single.alfworld.generate", description=__doc__)
    parser.add_argument("--out", type=user_path, help="folder to write games to")
    parser.add_argument("--pack", type=user_path, help="file to write the scenes alone to")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="let the planner win each scene first, some seconds each")
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=int, default=COUNTS[split], help=f"scenes for {split}")
    chosen = parser.parse_args(arguments)
    if chosen.out is None and chosen.pack is None:
        parser.error("name a folder by --out, or a file by --pack")
    try:
        scenes = {split: list(draw_scenes(split, getattr(chosen, split), chosen.seed)) for split in SPLITS}
        if chosen.check:
            engine = Engine()
            for split, some in scenes.items():
                scenes[split] = [scene for scene in some if solvable(scene, engine)]
                print(f"{split}: {len(scenes[split])} of {len(some)} scenes are won by the planner")
        if chosen.pack is not None:
            save_scenes(chosen.pack, scenes)
        if chosen.out is not None:
            print(f"{write_games(chosen.out, scenes)} games are in {chosen.out}")
    except (MagroundingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
