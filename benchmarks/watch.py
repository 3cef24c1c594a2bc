"""Watch a trained team play a game: `python -m benchmarks.watch --run runs/quick --out game.gif`."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from PIL import Image

from benchmarks.command import run_command
from magrounding.agents.team import Team, load_team
from magrounding.envs.parallel import WorldEnv
from magrounding.errors import ConfigurationError, choose
from magrounding.evaluation.evaluate import GREEDY, PLAYS
from magrounding.pretrained import find_run
from magrounding.registry import make
from magrounding.storage import write_atomic
from magrounding.threads import plan_threads, using
from magrounding.training.settings import read_settings

ENDINGS = (".gif", ".png")
_LAST_FRAMES = 3
"""How often a film shows its last picture, so that the end can be seen."""


@dataclass(frozen=True)
class Arguments:
    """Let a trained team play one game, and show it, with what each agent takes for itself where they divide."""

    run: str
    """A run's folder, or pretrained:<name>."""
    out: Path | None = None
    """A film (.gif) or a sheet of all pictures (.png); by default the game is printed as text."""
    stage: str | None = None
    """Stage, and the team trained on it; the run's last by default."""
    trained_seed: int | None = None
    """Which of the run's seeds; the first by default."""
    split: str | None = None
    """Where the game is from, e.g. eval_10x10; by default eval, or what the environment has in its place."""
    game: int = 0
    """Seed of the game."""
    play: str = GREEDY
    """greedy (the most likely action) or sampled (drawn)."""
    milliseconds: int = 600
    """How long a film shows a step."""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = tyro.cli(Arguments, prog="python -m benchmarks.watch")
    return run_command(lambda: watch(arguments))


def watch(arguments: Arguments) -> None:
    """Play and show."""
    choose("way to --play", arguments.play, PLAYS)
    if arguments.out is not None:
        choose("ending of --out", arguments.out.suffix.lower(), ENDINGS)
    if arguments.milliseconds < 1:
        raise ConfigurationError(f"--milliseconds must be positive, got {arguments.milliseconds}")
    settings = read_settings(find_run(arguments.run))
    stage = arguments.stage or settings.stages[-1]
    sets = tuple(settings.entry.evaluation_sets)
    games = choose("split", arguments.split or sets[1], sets)
    team = load_team(arguments.run, arguments.trained_seed, stage)
    options = settings.stage_options(stage.split("/")[0], games)
    env = make(settings.env, render_mode="ansi" if arguments.out is None else "rgb_array", **options)
    with using(plan_threads(1, 1, cuda=False)):
        frames, won = play_game(team, env, arguments.game, greedy=arguments.play == GREEDY)
    end = f"{'won' if won else 'lost'} after {len(frames) - 1} steps"
    if arguments.out is None:
        print("\n\n".join(map(str, frames)), f"\nThe game is {end}.", sep="\n")
        return
    pictures = [Image.fromarray(np.asarray(frame)) for frame in frames]
    film = arguments.out.suffix.lower() == ".gif"
    write_atomic(arguments.out, animate(pictures, arguments.milliseconds) if film else sheet(pictures))
    print(f"{arguments.out}: {end}")


def play_game(team: Team, env: WorldEnv, seed: int, *, greedy: bool) -> tuple[list[np.ndarray | str | None], bool]:
    """All that `render` shows of a game, each before the step that the agents decided in it, and whether it was won."""
    seen, infos = env.reset(seed=seed)
    memory, frames = team.initial_memory(1), []
    while env.agents:
        actions, memory = team.act(seen, memory, infos if frames else None, greedy=greedy)
        taken = team.taken(memory)
        if taken is not None:  # whoever is dead takes nothing
            taken = np.where([[[agent in env.agents]] for agent in env.possible_agents], taken[0], -1)
        frames.append(env.render(taken))
        seen, _, _, _, infos = env.step(actions)
    return [*frames, env.render()], any(info.get("won", False) for info in infos.values())


def animate(pictures: list[Image.Image], milliseconds: int) -> bytes:
    """A film (.gif) that goes on for ever, and stays at its end for a while."""
    with io.BytesIO() as file:
        shown = [*pictures, *pictures[-1:] * (_LAST_FRAMES - 1)]
        shown[0].save(file, "gif", save_all=True, append_images=shown[1:], duration=milliseconds, loop=0)
        return file.getvalue()


def sheet(pictures: list[Image.Image]) -> bytes:
    """All pictures beside and below each other (.png), read line by line."""
    columns = math.ceil(math.sqrt(len(pictures)))
    width, height = (max(getattr(picture, side) for picture in pictures) for side in ("width", "height"))
    whole = Image.new("RGB", (columns * width, math.ceil(len(pictures) / columns) * height), "white")
    for k, picture in enumerate(pictures):
        whole.paste(picture, (k % columns * width, k // columns * height))
    with io.BytesIO() as file:
        whole.save(file, "png", optimize=True)
        return file.getvalue()


if __name__ == "__main__":
    sys.exit(main())
