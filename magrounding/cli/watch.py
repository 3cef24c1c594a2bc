"""Watch a trained team play a game: `magrounding watch --run runs/quick --out game.gif`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tyro
from PIL import Image

from magrounding.cli.command import CommandLine, run_command
from magrounding.cli.options import chosen_elsewhere, configure, parse_env_options
from magrounding.envs.make import make
from magrounding.errors import ConfigurationError, choose
from magrounding.experiment.settings import read_settings
from magrounding.play.evaluate import GREEDY, PLAYS
from magrounding.play.film import film
from magrounding.play.team import Team, TeamMemory, load_team
from magrounding.pretrained import find_run
from magrounding.registry import EnvEntry
from magrounding.storage import write_atomic
from magrounding.threads import plan_threads, using

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

ENDINGS = (".gif", ".png", ".mp4")


@dataclass(frozen=True)
class Arguments:
    """Let a trained team play one game, and show it, with what each agent takes for itself where they divide."""

    run: str
    """A run's folder, or pretrained:<name>."""
    out: Path | None = None
    """A film (.gif, or .mp4 with the extra `play`), or a sheet of its pictures (.png) of at most 2,000 × 2,000 pixels;
    by default the game is printed as text."""
    stage: str | None = None
    """Stage, and the team trained on it; the run's last by default."""
    trained_seed: int | None = None
    """Which of the run's seeds; the first by default."""
    split: str | None = None
    """Where the game is from, e.g. eval_10x10; by default eval, or what the environment has in its place."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of the game, name=value, instead of the run's; may be repeated, or several separated by commas."""
    game: int = 0
    """Seed of the game."""
    play: str = GREEDY
    """greedy (the most likely action) or sampled (drawn)."""
    milliseconds: int = 600
    """How long a film shows a step."""
    quiet: bool = False
    """Print nothing but where the pictures are (--out), and errors."""


def main(line: CommandLine) -> int:
    """Run the command and return its exit code."""
    arguments = line.parse(Arguments)
    return run_command(lambda: watch(arguments))


def watch(arguments: Arguments) -> None:
    """Play and show."""
    choose("way to --play", arguments.play, PLAYS)
    if arguments.out is not None:
        choose("ending of --out", arguments.out.suffix.lower(), ENDINGS)
    if arguments.quiet and arguments.out is None:
        raise ConfigurationError("--quiet prints nothing but where the pictures are: name a file for them with --out")
    if arguments.milliseconds < 1:
        raise ConfigurationError(f"--milliseconds must be positive, got {arguments.milliseconds}")
    settings = read_settings(find_run(arguments.run))
    entry = settings.entry
    stage = arguments.stage or settings.stages[-1]
    games = choose("split", arguments.split or _held_out(entry), tuple(entry.sets_of(stage.split("/")[0])))
    asked = parse_env_options(arguments.env_option, entry, {**chosen_elsewhere(entry, "--stage"), "agents": "the run"})
    team = load_team(arguments.run, arguments.trained_seed, stage)
    options = {**settings.stage_options(stage.split("/")[0], games), **asked}
    if not team.spec.reads_alike(configure(entry, options).describe()):
        raise ConfigurationError(f"the team was trained to read and see other things than a game with {asked} shows")
    env = make(settings.env, render_mode="ansi" if arguments.out is None else "rgb_array", **options)
    try:
        with using(plan_threads(1, 1, cuda=False)):
            frames, won = play_game(team, env, arguments.game, greedy=arguments.play == GREEDY)
    finally:
        env.close()
    end = f"{'won' if won else 'lost'} after {len(frames) - 1} steps"
    if arguments.out is None:
        print("\n\n".join(map(str, frames)), f"\nThe game is {end}.", sep="\n")
        return
    pictures = [Image.fromarray(np.asarray(frame)) for frame in frames]
    write_atomic(arguments.out, film(pictures, arguments.out.suffix.lower(), arguments.milliseconds))
    print(arguments.out if arguments.quiet else f"{arguments.out}: {end}")


def _held_out(entry: EnvEntry) -> str:
    """The set of games that the environment keeps from training; its only one where there is no other."""
    return list(entry.evaluation_sets)[:2][-1]


def play_game(team: Team, env: ParallelEnv, seed: int, *, greedy: bool) -> tuple[list[Any], bool]:
    """All that `render` shows of a game, each before the step that the agents decided in it, and whether it was won."""
    seen, infos = env.reset(seed=seed)
    memory, frames = team.initial_memory(1), []
    while env.agents:
        actions, memory = team.act(seen, memory, infos if frames else None, greedy=greedy, explain=True)
        frames.append(_picture(env, _claims(team, memory, env)))
        seen, _, _, _, infos = env.step(actions)
    return [*frames, _picture(env, None)], any(info.get("won", False) for info in infos.values())


def _claims(team: Team, memory: TeamMemory, env: ParallelEnv) -> np.ndarray | None:
    """[n, H, W], see `Team.marks`; the dead claim nothing. None where nothing is claimed, or nothing can show it."""
    marks = team.marks(memory) if "marks" in inspect.signature(env.render).parameters else None
    return None if marks is None else np.where([[[agent in env.agents]] for agent in env.possible_agents], marks[0], -1)


def _picture(env: Any, marks: np.ndarray | None) -> Any:
    """What the env shows; ConfigurationError where it shows nothing."""
    frame = env.render() if marks is None else env.render(marks=marks)
    if frame is None:
        raise ConfigurationError(f"{type(env).__name__} shows no {env.render_mode} of its games: it cannot be watched")
    return frame
