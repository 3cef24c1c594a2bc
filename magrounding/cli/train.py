"""Train a team through a curriculum: `magrounding train --env ma_rtfm --agents 3`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import tyro

from magrounding.agents.policy import CONTRAST
from magrounding.cli.command import RESUMABLE, CommandLine, derived, items, run_command
from magrounding.cli.options import (
    ENV_FLAG,
    change_learner,
    choose_workers,
    chosen_elsewhere,
    configure,
    learner_options,
    parse_env_options,
    parse_options,
)
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.curriculum import check_regrets, run_curriculum
from magrounding.experiment.presets import Preset, default_preset
from magrounding.experiment.progress import Display
from magrounding.experiment.report import REPORT_FILE
from magrounding.experiment.settings import RunSettings, make_settings, read_settings
from magrounding.play.demonstrations import digests
from magrounding.play.loading import CONFIG_FILE
from magrounding.registry import EnvEntry, agent_entry, load
from magrounding.training.algorithm import AlgorithmConfig
from magrounding.training.learner import MinibatchConfig


@dataclass(frozen=True)
class Arguments:
    """Train agents stage by stage, evaluate them, and write a report."""

    env: str | None = derived("none: name one, unless --resume finds it in --out")
    """Environment id, e.g. ma_rtfm."""
    agents: int | None = derived("the environment's")
    """Number of agents."""
    agent: str | None = derived("the preset's")
    """Id of the network (README, section Agents)."""
    preset: str | None = derived("the first of demo, quick and paper that the environment has, or else general")
    """Algorithm, network and budget: demo, quick, quick_rl, paper, silg, and for single environments paper_rl,
    quick_qmix, paper_qmix, quick_lge, paper_lge, quick_gold and others (README, section Agents). general is for any
    environment."""
    budget: float | None = derived("1")
    """Factor for the preset's environment steps, e.g. 0.1 for a first look. Below 0.25 there are fewer evaluations,
    with fewer games."""
    games: int | None = derived("the preset's, mostly 1,000")
    """Games of an evaluation after a phase, on each set."""
    evaluate_every: int | None = derived("the preset's")
    """Environment steps between evaluations within a phase, for a finer learning curve."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of the environment, name=value; may be repeated, or several separated by commas, e.g. max_cycles=80."""
    network: str | None = derived("the preset's")
    """Options of the networks, name=value separated by commas, e.g. kinship=32, or language_model=<folder> for emma."""
    learning: str | None = derived("the preset's")
    """Options of the learners, name=value separated by commas, e.g. entropy=0.03; they apply to every phase whose
    learner has them. weights.<loss> is the weight of an auxiliary loss, e.g. weights.modelling=0.3."""
    stages: str | None = derived("the environment's curriculum")
    """Stages in order, separated by commas."""
    seeds: str | None = derived("0")
    """Seeds separated by commas."""
    share_parameters: bool = derived("the preset's, mostly from three agents on", False)
    """One network plays for all agents, instead of one for each."""
    team_reward: float | None = derived("the preset's")
    """Part of each agent's reward that is the team's mean instead of its own, 0 to 1."""
    contrast: float | None = derived("the preset's")
    """Weight of the contrastive loss that grounds symbols, in every phase."""
    demonstrations: str | None = derived("none, the oracle teaches")
    """Files from which phases of imitation learn, separated by commas, one a stage."""
    workers: int | None = derived("2")
    """Processes that share the games of a simulator of one game; 0 plays them in this one."""
    out: Path | None = derived("runs/<env>-<agent>[-<agents>]-<preset>")
    """Run folder."""
    resume: bool = False
    """Continue the run in the folder, with the settings it was started with."""
    device: str = "auto"
    """auto, cpu or cuda."""
    threads: int | None = derived("the cores that it may run on")
    """Cores to compute with, beside the processes of simulators."""
    bf16: bool = derived("no", False)
    """Compute networks in bfloat16."""
    quiet: bool = False
    """Print nothing but where the report is, and errors."""


def main(line: CommandLine) -> int:
    """Run the command and return its exit code."""
    arguments = line.parse(Arguments)
    return run_command(lambda: train(arguments, line), lambda: _how_to_resume(arguments, line), RESUMABLE)


def train(arguments: Arguments, line: CommandLine) -> None:
    """Do what the arguments say."""
    folder = run_folder(arguments)
    settings = resumed(arguments, folder, line) if arguments.resume else requested(arguments)
    if _switched(line, "share-parameters") is False:
        settings = replace(settings, share_parameters=False)
    display = Display(quiet=arguments.quiet)
    run_curriculum(
        settings,
        folder,
        resume=arguments.resume,
        device=arguments.device,
        threads=arguments.threads,
        display=display,
        command=str(line),
    )
    print(folder / REPORT_FILE if arguments.quiet else f"report: {folder / REPORT_FILE}")


def requested(arguments: Arguments) -> RunSettings:
    """The settings that the arguments describe."""
    if arguments.env is None:
        raise ConfigurationError(
            "name an environment, e.g. --env ma_rtfm, or with --resume the run's folder with --out"
        )
    settings = make_settings(
        arguments.env,
        arguments.agent,
        arguments.agents,
        arguments.preset or default_preset(arguments.env),
        None if arguments.stages is None else tuple(items(arguments.stages)),
        (0,) if arguments.seeds is None else tuple(_seed(item) for item in items(arguments.seeds)),
    )
    if arguments.env_option:
        settings = with_env_options(settings, _env_options(arguments, settings.entry))
    if arguments.budget is not None:
        settings = replace(settings, preset=settings.preset.with_budget(arguments.budget))
    if arguments.games is not None:
        settings = replace(settings, preset=replace(settings.preset, report_games=arguments.games, whole_games=None))
    if arguments.evaluate_every is not None:
        settings = replace(settings, preset=replace(settings.preset, evaluate_every=arguments.evaluate_every))
    if arguments.network is not None:
        settings = settings.with_network(parse_options(arguments.network, _network(settings), "--network"))
        settings.make_network()  # what cannot be made is reported before anything is written
    learning: Mapping[str, Any] = {}
    if arguments.learning is not None:
        learning = parse_options(arguments.learning, _learning(settings), "--learning")
        changed = settings.preset.with_learners(lambda learner: change_learner(learner, learning))
        settings = replace(settings, preset=changed)
    if arguments.bf16:
        settings = replace(settings, preset=settings.preset.with_learners(lambda learner: replace(learner, bf16=True)))
    if arguments.team_reward is not None:
        settings = replace(settings, preset=replace(settings.preset, team_reward=arguments.team_reward))
    if arguments.contrast is not None:
        settings = replace(settings, preset=_with_contrast(settings.preset, arguments.contrast))
        if arguments.contrast and not settings.make_network().contrasts:
            raise ConfigurationError(
                f"agent {settings.agent!r} as it is configured has no contrastive loss: leave out --contrast"
            )
    settings = replace(
        settings,
        share_parameters=arguments.share_parameters or settings.share_parameters,
        demonstrations=digests(items(arguments.demonstrations or "")),
        workers=_workers(arguments, settings),
    )
    if learning.get("regret") and not arguments.resume:  # runs of before may have asked for it in vain
        check_regrets(settings)
    return settings


def with_env_options(settings: RunSettings, options: Mapping[str, Any]) -> RunSettings:
    """The settings with options of the environment changed.

    Raises:
        ConfigurationError: options that make no game of a stage or evaluation set, or not one that the networks need.
    """
    preset = replace(settings.preset, env_options={**settings.preset.env_options, **options})
    settings = replace(settings, preset=preset)
    for name, value in options.items():
        if settings.env_options[name] != value:
            raise ConfigurationError(f"agent {settings.agent!r} needs {name}={settings.env_options[name]}, got {value}")
    for stage in settings.stages:
        for evaluation_set in (None, *settings.entry.evaluation.sets_of(stage)):
            configure(settings.entry, settings.stage_options(stage, evaluation_set))
    return settings


def _env_options(arguments: Arguments, entry: EnvEntry) -> dict[str, Any]:
    return parse_env_options(arguments.env_option, entry, chosen_elsewhere(entry, "--stages"))


def _workers(arguments: Arguments, settings: RunSettings) -> int:
    return choose_workers(arguments.workers, configure(settings.entry, settings.stage_options(settings.stages[0])))


def _network(settings: RunSettings) -> dict[str, Any]:
    """Every option of the run's networks; those of one without `config` are keyword arguments."""
    network = settings.make_network()
    if hasattr(network, "config"):
        return vars(network.config)
    known = signature(load(agent_entry(settings.agent).policy)).parameters.values()
    defaults = {each.name: each.default for each in known if each.default is not each.empty}
    return {**defaults, **settings.policy_options}


def _learning(settings: RunSettings) -> dict[str, Any]:
    """Every option of a learner of the run, as the first phase that has it sets it."""
    return learner_options((phase.learner for _, phase in settings.phases()), settings.make_network())


def _with_contrast(preset: Preset, weight: float) -> Preset:
    """The preset with a contrast in every phase whose learner has the minibatches of games that it compares."""
    if weight < 0:
        raise ConfigurationError(f"--contrast is the weight of a loss, 0 or positive, got {weight:g}")
    if not any(_compares(phase.learner) for phases in preset.phases.values() for phase in phases):
        raise ConfigurationError(f"preset {preset.name!r} learns without minibatches: leave out --contrast")
    options = {f"weights.{CONTRAST}": weight}
    return preset.with_learners(lambda learner: change_learner(learner, options) if _compares(learner) else learner)


def _compares(learner: AlgorithmConfig) -> bool:
    return isinstance(learner, MinibatchConfig)


def run_folder(arguments: Arguments) -> Path:
    """Where the run goes, or is."""
    if arguments.out is not None:
        return arguments.out
    settings = requested(arguments)
    team = f"-{settings.agents}" if settings.entry.multi_agent else ""
    return Path("runs") / f"{settings.env}-{settings.agent}{team}-{settings.preset.name}"


def resumed(arguments: Arguments, folder: Path, line: CommandLine) -> RunSettings:
    """The run's own settings; CheckpointError where an argument contradicts them."""
    settings = read_settings(folder)
    for name, (asked, found) in _compared(arguments, settings, line).items():
        if asked is not None and asked != found:
            raise CheckpointError(
                f"the run in {folder} has {name} {_show(found)}, not {_show(asked)}: "
                f"resume it without --{name}, or name another folder with --out"
            )
    return settings if arguments.workers is None else replace(settings, workers=_workers(arguments, settings))


def _compared(arguments: Arguments, settings: RunSettings, line: CommandLine) -> dict[str, tuple[object, object]]:
    """Flag → what was asked for (None: nothing) and what the run has."""
    if arguments.env not in (None, settings.env):
        return {"env": (arguments.env, settings.env)}  # options of the one mean nothing in the other
    compared: dict[str, tuple[object, object]] = {}
    learners = [phase.learner for _, phase in settings.phases()]
    if arguments.learning is not None:
        options = parse_options(arguments.learning, _learning(settings), "--learning")
        own = [learner_options([learner], settings.make_network()) for learner in learners]
        compared["learning"] = options, {name: _one([each[name] for each in own if name in each]) for name in options}
    if arguments.network is not None:
        found = _network(settings)
        options = parse_options(arguments.network, found, "--network")
        compared["network"] = options, {option: found[option] for option in options}
    if arguments.env_option:
        found = {**settings.entry.options, **settings.env_options}
        options = _env_options(arguments, settings.entry)
        given = {option: tuple(v) if isinstance(v := found[option], list) else v for option in options}
        compared[ENV_FLAG.removeprefix("--")] = options, given
    contrast = _one([each.weights.get(CONTRAST, 0.0) for each in learners if _compares(each)])
    files = None if arguments.demonstrations is None else tuple(items(arguments.demonstrations))
    return {
        **compared,
        "agents": (arguments.agents, settings.agents),
        "agent": (arguments.agent, settings.agent),
        "preset": (arguments.preset, settings.preset.name),
        "budget": (arguments.budget, settings.preset.budget),
        "stages": (None if arguments.stages is None else tuple(items(arguments.stages)), settings.stages),
        "seeds": (None if arguments.seeds is None else tuple(map(_seed, items(arguments.seeds))), settings.seeds),
        "bf16": (_switched(line, "bf16"), all(learner.bf16 for learner in learners)),
        "share-parameters": (_switched(line, "share-parameters"), settings.share_parameters),
        "contrast": (arguments.contrast, contrast),
        "team-reward": (arguments.team_reward, settings.preset.team_reward),
        "games": (arguments.games, settings.preset.report_games),
        "evaluate-every": (arguments.evaluate_every, settings.preset.evaluate_every),
        "demonstrations": (files, tuple(settings.demonstrations)),
    }


def _one(values: Sequence[object]) -> object:
    """What all phases have; where they differ, all of it in words."""
    distinct = list(dict.fromkeys(values))
    return " and ".join(map(str, distinct)) if len(distinct) > 1 else next(iter(distinct), None)


def _switched(line: CommandLine, name: str) -> bool | None:
    """Whether a switch was typed as on or as off; None where it was not typed."""
    names = (f"--{name}", f"--no-{name}")
    typed = [each for each in (argument.replace("_", "-") for argument in line.arguments) if each in names]
    return typed[-1] == f"--{name}" if typed else None


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigurationError(f"--seeds takes integers separated by commas, got {text!r}: type e.g. 0,1,2") from None


def _show(value: object) -> str:
    if isinstance(value, Mapping):
        value = tuple(f"{name}={content}" for name, content in value.items())
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _how_to_resume(arguments: Arguments, line: CommandLine) -> str:
    folder = run_folder(arguments)
    if not (folder / CONFIG_FILE).exists():
        return "stopped before the run began"
    device = () if arguments.device == "auto" else ("--device", arguments.device)
    threads = () if arguments.threads is None else ("--threads", str(arguments.threads))
    again = CommandLine(line.prog, ("--out", str(folder), "--resume", *device, *threads))
    return f"stopped; the state is saved, go on with: {again}"
