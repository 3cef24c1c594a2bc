"""Train a team through a curriculum: `python -m benchmarks.curriculum --env ma_rtfm --agents 3`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from benchmarks.command import run_command
from benchmarks.options import parse_options
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.training.algorithms import AlgorithmConfig
from magrounding.training.curriculum import run_curriculum
from magrounding.training.demonstrations import digests
from magrounding.training.minibatch import MinibatchConfig
from magrounding.training.presets import Preset, default_preset
from magrounding.training.settings import RunSettings, make_settings, read_settings


@dataclass(frozen=True)
class Arguments:
    """Train agents stage by stage, evaluate them, and write a report."""

    env: str
    """Environment id, e.g. ma_rtfm."""
    agents: int | None = None
    """Number of agents; the environment's own by default."""
    agent: str | None = None
    """Id of the networks; the preset's own by default."""
    preset: str | None = None
    """Budgets and options: demo, quick, quick_rl, quick_qmix, paper, silg or paper_qmix; by default the first
    of demo, quick and paper that there is."""
    budget: float | None = None
    """So many times the preset's environment steps, e.g. 0.1 to see where a run would go."""
    games: int | None = None
    """Games of an evaluation after a phase, on each set; the preset's by default, mostly 1,000."""
    network: str | None = None
    """Options of the networks, name=value separated by commas, e.g. kinship=32, or language_model=<folder> for emma."""
    learning: str | None = None
    """Options of the learners, name=value separated by commas, in every phase that has them, e.g. entropy=0.03."""
    stages: str | None = None
    """Stages in order, separated by commas; the environment's curriculum by default."""
    seeds: str | None = None
    """Seeds separated by commas (default: 0)."""
    share_parameters: bool = False
    """Let one network play for all agents; by default each has its own."""
    team_reward: float | None = None
    """Part of each agent's reward that is the team's mean instead of its own, 0 to 1; the preset's by default."""
    contrast: float | None = None
    """Weight of the contrastive loss that grounds symbols, in every phase; the preset's by default."""
    demonstrations: str | None = None
    """Files from which phases of imitation learn, separated by commas, one a stage; by default the oracle teaches."""
    out: Path | None = None
    """Run folder (default: runs/<env>-<agent>[-<agents>]-<preset>)."""
    resume: bool = False
    """Go on with the run in the folder; it knows its own settings."""
    device: str = "auto"
    """auto, cpu or cuda."""
    bf16: bool = False
    """Compute networks in bfloat16."""


def main() -> int:
    """Run the command and return its exit code."""
    arguments = tyro.cli(Arguments, prog="python -m benchmarks.curriculum")
    return run_command(lambda: train(arguments), lambda: _how_to_resume(arguments))


def train(arguments: Arguments) -> None:
    """Do what the arguments say."""
    folder = run_folder(arguments)
    settings = _resumed(arguments, folder) if arguments.resume else requested(arguments)
    run_curriculum(settings, folder, resume=arguments.resume, device=arguments.device, command=_command())
    print(f"report: {folder / 'report.md'}")


def requested(arguments: Arguments) -> RunSettings:
    """The settings that the arguments describe."""
    settings = make_settings(
        arguments.env,
        arguments.agent,
        arguments.agents,
        arguments.preset or default_preset(arguments.env),
        None if arguments.stages is None else tuple(_items(arguments.stages)),
        (0,) if arguments.seeds is None else tuple(_seed(item) for item in _items(arguments.seeds)),
    )
    if arguments.budget is not None:
        settings = replace(settings, preset=settings.preset.with_budget(arguments.budget))
    if arguments.games is not None:
        settings = replace(settings, preset=replace(settings.preset, report_games=arguments.games))
    if arguments.network is not None:
        settings = settings.with_network(parse_options(arguments.network, _network(settings), "--network"))
        settings.make_network()  # whatever cannot be is told before anything is written
    if arguments.learning is not None:
        options = parse_options(arguments.learning, _learning(settings), "--learning")
        settings = replace(settings, preset=settings.preset.with_learners(lambda learner: _change(learner, options)))
    if arguments.bf16:
        settings = replace(settings, preset=settings.preset.with_learners(lambda learner: replace(learner, bf16=True)))
    if arguments.team_reward is not None:
        settings = replace(settings, preset=replace(settings.preset, team_reward=arguments.team_reward))
    if arguments.contrast is not None:
        settings = replace(settings, preset=_with_contrast(settings.preset, arguments.contrast))
    files = digests(_items(arguments.demonstrations or ""))
    return replace(settings, share_parameters=arguments.share_parameters, demonstrations=files)


def _network(settings: RunSettings) -> dict[str, Any]:
    """Every option of the run's networks."""
    return vars(settings.make_network().config)


def _learning(settings: RunSettings) -> dict[str, Any]:
    """Every option of a learner of the run, as the first phase that has it sets it."""
    options: dict[str, Any] = {}
    for _, phase in settings.phases():
        options = {**vars(phase.learner), **options}
    options.pop("algorithm")
    return options


def _change(learner: AlgorithmConfig, options: Mapping[str, Any]) -> AlgorithmConfig:
    """The learner with those of the options that it has."""
    return replace(learner, **{name: value for name, value in options.items() if hasattr(learner, name)})


def _with_contrast(preset: Preset, weight: float) -> Preset:
    if weight < 0:
        raise ConfigurationError(f"--contrast is the weight of a loss, 0 or positive, got {weight:g}")

    def change(learner: AlgorithmConfig) -> AlgorithmConfig:
        if not isinstance(learner, MinibatchConfig):
            raise ConfigurationError(f"preset {preset.name!r} learns without minibatches: leave out --contrast")
        return replace(learner, contrast=weight)

    return preset.with_learners(change)


def run_folder(arguments: Arguments) -> Path:
    """Where the run goes, or is."""
    if arguments.out is not None:
        return arguments.out
    settings = requested(arguments)
    team = f"-{settings.agents}" if settings.entry.multi_agent else ""
    return Path("runs") / f"{settings.env}-{settings.agent}{team}-{settings.preset.name}"


def _resumed(arguments: Arguments, folder: Path) -> RunSettings:
    """The run's own settings; CheckpointError where an argument contradicts them."""
    settings = read_settings(folder)
    given: dict[str, tuple[object, object]] = {}
    for name, text, known in (("learning", arguments.learning, _learning), ("network", arguments.network, _network)):
        if text is not None:
            found = known(settings)
            options = parse_options(text, found, f"--{name}")
            given[name] = options, {option: found[option] for option in options}
    given |= {
        "env": (arguments.env, settings.env),
        "agents": (arguments.agents, settings.agents),
        "agent": (arguments.agent, settings.agent),
        "preset": (arguments.preset, settings.preset.name),
        "stages": (None if arguments.stages is None else tuple(_items(arguments.stages)), settings.stages),
        "seeds": (None if arguments.seeds is None else tuple(map(_seed, _items(arguments.seeds))), settings.seeds),
        "bf16": (arguments.bf16 or None, all(phase.learner.bf16 for _, phase in settings.phases())),
        "share-parameters": (arguments.share_parameters or None, settings.share_parameters),
        "contrast": (
            arguments.contrast,
            next((getattr(phase.learner, "contrast", None) for _, phase in settings.phases()), None),
        ),
        "team-reward": (arguments.team_reward, settings.preset.team_reward),
        "games": (arguments.games, settings.preset.report_games),
        "demonstrations": (
            None if arguments.demonstrations is None else tuple(_items(arguments.demonstrations)),
            tuple(settings.demonstrations),
        ),
    }
    for name, (asked, found) in given.items():
        if asked is not None and asked != found:
            raise CheckpointError(
                f"the run in {folder} has {name} {_show(found)}, not {_show(asked)}: "
                f"resume it without --{name}, or name another folder with --out"
            )
    return settings


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"--seeds takes integers separated by commas, got {text!r}") from None


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        value = tuple(f"{name}={content}" for name, content in value.items())
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _command() -> str:
    return shlex.join(["python", "-m", "benchmarks.curriculum", *(a for a in sys.argv[1:] if a != "--resume")])


def _how_to_resume(arguments: Arguments) -> str:
    folder = run_folder(arguments)
    line = f"python -m benchmarks.curriculum --env {arguments.env} --out {shlex.quote(str(folder))} --resume"
    return f"stopped; the state is saved, go on with: {line}"


if __name__ == "__main__":
    sys.exit(main())
