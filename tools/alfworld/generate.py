"""The command that makes games: `python -m tools.alfworld.generate --out FOLDER`.

It writes a folder for each game, as ALFWorld's download has it, below `train`, `valid` and `test`; the option
`games=FOLDER` of the environment plays them. `--pack FILE` writes the scenes alone, the form in which the package ships
its own, which are `--train 240 --valid 48 --test 96 --seed 0`.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from magrounding.errors import CheckpointError, MagroundingError
from magrounding.output import show_anything
from magrounding.single.alfworld import kinds
from magrounding.single.alfworld.env import Engine
from magrounding.single.alfworld.games import GAME_FILE, game_of
from magrounding.single.alfworld.scenes import LOOK, SPLITS, Scene
from magrounding.storage import json_text, user_path
from tools.alfworld.drawing import draw_scenes

COUNTS = {"train": 240, "valid": 48, "test": 96}
"""Scenes of the package, by split."""
TASK_FILE = "traj_data.json"


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


def task_of(scene: Scene) -> dict[str, Any]:
    """Return the content of `traj_data.json`: the task, for the scripted expert."""
    return {
        "task_type": scene.task,
        "pddl_params": {
            "object_target": scene.target,
            "parent_target": scene.goal,
            "toggle_target": kinds.LAMP if scene.task == LOOK else "",
            "mrecep_target": "",
            "object_sliced": False,
        },
    }


def save_scenes(path: Path, scenes: dict[str, list[Scene]]) -> None:
    """Write a file like the package's: the same scenes, the same bytes."""
    text = json_text({split: [asdict(scene) for scene in some] for split, some in scenes.items()})
    with path.open("wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        packed.write(text.encode())


def solvable(scene: Scene, engine: Engine) -> bool:
    """Return whether the planner's commands win a scene."""
    won = engine.start(game_of(scene)).won
    for command in engine.plan():
        won = engine.step(command).won
    return won


def main(arguments: list[str] | None = None) -> int:
    """Make games as the command line says."""
    show_anything()
    parser = argparse.ArgumentParser(prog="python -m tools.alfworld.generate", description=__doc__)
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
