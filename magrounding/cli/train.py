"""Train a team through a curriculum: `magrounding train --env ma_rtfm --agents 3`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import tyro

from magrounding.agents.policy import CONTRAST
from magrounding.cli.command import CommandLine, derived, items
from magrounding.cli.game_arguments import DeviceArguments, QuietArguments, Repeated
from magrounding.cli.job_arguments import JobsArguments
from magrounding.cli.options import (
    assign_learners,
    assign_network,
    assignments,
    choose_workers,
    named_trackers,
    network_options,
    parse_env_options,
)
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.beginning import check_costs_to_go
from magrounding.experiment.config import RunConfig, make_config, read_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.jobs.job import check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.jobs.seeds import seed_jobs
from magrounding.experiment.phase import NotLearnt
from magrounding.experiment.presets import default_preset
from magrounding.experiment.progress import Display
from magrounding.experiment.reports.run import outcome_table
from magrounding.experiment.results import RunResults, find_results
from magrounding.experiment.tables import say
from magrounding.play.demonstrations import digests
from magrounding.play.run_folder import RunFolder
from magrounding.schema import NonNegative, Positive, assign, diff, has
from magrounding.training.algorithm import AlgorithmConfig

REFUSED = "mend that, and a run goes on with --resume"
Switch = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True, kw_only=True)
class RunArguments(QuietArguments, JobsArguments, DeviceArguments):
    """Options of a run, where it computes, and who sees it."""

    env: str | None = derived("none: name one, unless --resume finds it in --out")
    """Environment id, e.g. ma_rtfm."""
    agents: int | None = derived("the environment's")
    """Number of agents."""
    agent: str | None = derived("the preset's")
    """Id of the network (docs/agents.md)."""
    preset: str | None = derived("the first of demo, quick and paper that the environment has, or else general")
    """Algorithm, network and budget: demo, quick, quick_rl, paper, silg, and for single environments paper_rl,
    quick_qmix, paper_qmix, quick_lge, paper_lge, quick_gold and others (docs/reference/presets.md). general is for any
    environment."""
    budget: Positive | None = derived("1")
    """Factor for the preset's environment steps, e.g. 0.1 for a first look. Below 0.25 there are fewer evaluations,
    with fewer games."""
    games: int | None = derived("the preset's, mostly 1,000")
    """Games of an evaluation after a phase, on each set."""
    evaluate_every: int | None = derived("the preset's")
    """Environment steps between evaluations within a phase, for a finer learning curve."""
    env_option: Repeated = ()
    """An option of the environment, name=value; may be repeated, or several separated by commas, e.g. max_cycles=80."""
    network: str | None = derived("the preset's")
    """Options of the networks, name=value separated by commas, e.g. similarity=32, or language_model=<folder>."""
    learning: str | None = derived("the preset's")
    """Options of the learners, name=value separated by commas, e.g. entropy=0.03; they apply to every phase whose
    learner has them. weights.<loss> is the weight of an auxiliary loss, e.g. weights.modelling=0.3."""
    set: Repeated = ()
    """Any other entry of the run's config.json, path=value, e.g. phases.s1.0.num_envs=128 or
    evaluation.selection_games=100; may be repeated."""
    stages: str | None = derived("the environment's curriculum")
    """Stages in order, separated by commas."""
    seeds: str | None = derived("0")
    """Seeds separated by commas."""
    share_parameters: Switch = derived("the preset's, mostly from three agents on", False)
    """One network plays for all agents, instead of one for each."""
    no_share_parameters: Switch = derived("the preset's", False)
    """One network for each agent."""
    team_reward: float | None = derived("the preset's")
    """Part of each agent's reward that is the team's mean instead of its own, 0 to 1."""
    contrast: NonNegative | None = derived("the preset's")
    """Weight of the contrastive loss that grounds symbols, in every phase."""
    demonstrations: str | None = derived("none, the oracle teaches")
    """Files from which phases of imitation learn, separated by commas, one a stage."""
    initial: str | None = derived("none, untrained networks")
    """Run folder, pretrained:NAME or hub:OWNER/NAME with whose weights every seed begins."""
    tracker: str | None = derived("those that the run began with, or tensorboard")
    """Services that show curves: none, or some of tensorboard, wandb, mlflow and trackio, separated by commas
    (docs/trackers.md)."""
    project: str | None = derived("magrounding")
    """Project under which they show the run."""
    bf16: Switch = derived("no", False)
    """Compute networks in bfloat16."""
    no_bf16: Switch = derived("no", False)
    """Compute networks in float32, where a preset does not."""


@dataclass(frozen=True)
class Arguments(RunArguments):
    """Train agents stage by stage, evaluate them, and write a report."""

    out: Path | None = derived("runs/<env>-<agent>[-<agents>]-<preset>")
    """Run folder."""
    resume: bool = False
    """Continue the run in the folder, with the settings it was started with."""
    prepare: bool = False
    """Begin the run and train nothing: `magrounding jobs` prints a command for each of its seeds."""
    only_seeds: str | None = derived("all")
    """Seeds to train of those of the run, separated by commas, without a report; with --resume."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Do what the arguments say; JobsFailed where seeds that train side by side do not end well."""
    folder = run_folder(arguments)
    config = resumed(arguments, folder) if arguments.resume else requested(arguments)
    display = Display(quiet=arguments.quiet)
    train = partial(
        run_curriculum,
        config,
        folder,
        device=arguments.device,
        display=display,
        command=str(line),
        trackers=named_trackers(arguments.tracker),
        project=arguments.project,
        threads=arguments.threads,
    )
    resume, some = arguments.resume, arguments.only_seeds is not None or arguments.prepare
    if some or arguments.side_by_side:
        run = train(resume=resume, seeds=seeds_of(arguments.only_seeds or ""))
        if some:
            return
        run = RunFolder(run.path.absolute())  # jobs on other nodes have other folders to work in
        jobs = seed_jobs(config, run, words_of_job(arguments))
        outcomes = run_jobs(jobs, arguments.places(run.path, arguments.threads), display)
        check_outcomes(outcome for outcome in outcomes if outcome.code != NotLearnt.code)
        resume = True
    run = train(resume=resume)
    found = None if arguments.quiet else find_results(run)
    say(str(run.report) if found is None else ended(run, found))


def ended(run: RunFolder, found: RunResults) -> str:
    """Return what a person reads after training: results, the report's place, and commands that come next."""
    name = shlex.quote(str(run))
    return (
        f"\n{outcome_table(found).markdown()}\n\nreport: {run.report}\nnext: magrounding watch --run {name} "
        f"--out game.gif\n      magrounding evaluate --run {name}\n      magrounding serve --player mine=run:{name}"
    )


def words_of_job(arguments: RunArguments) -> list[str]:
    """Return the arguments of a job that trains a part of what a command was asked for."""
    words = ["--device", arguments.device, "--threads", str(arguments.threads_of_job(arguments.threads))]
    for name in ("workers", "tracker", "project"):
        value = getattr(arguments, name)
        words += [] if value is None else [f"--{name}", str(value)]
    return words


def run_folder(arguments: Arguments) -> Path:
    """Return the folder of the run, new or old."""
    if arguments.out is not None:
        return arguments.out
    config = requested(arguments)
    team = f"-{config.agents}" if config.entry.multi_agent else ""
    return Path("runs") / f"{config.env}-{config.agent}{team}-{config.preset}"


def requested(arguments: RunArguments) -> RunConfig:
    """Return the configuration of a new run."""
    if arguments.env is None:
        raise ConfigurationError(
            "name an environment, e.g. --env ma_rtfm, or with --resume the run's folder with --out"
        )
    config = make_config(
        arguments.env,
        arguments.agent,
        arguments.agents,
        arguments.preset or default_preset(arguments.env),
        None if arguments.stages is None else tuple(items(arguments.stages)),
        (0,) if arguments.seeds is None else seeds_of(arguments.seeds),
    )
    if arguments.budget is not None:
        config = config.with_budget(arguments.budget)
    if arguments.games is not None:
        config = replace(config, evaluation=replace(config.evaluation, whole_games=None))
    config = changed(config, arguments)
    if arguments.workers is None:
        config = replace(config, workers=_workers(None, config))
    if arguments.learning is not None and "cost_to_go=" in arguments.learning:
        check_costs_to_go(config)  # presets ask for it in stages whose experts cannot tell, people do so by mistake
    return config


def resumed(arguments: Arguments, folder: Path) -> RunConfig:
    """Return the configuration of a run that goes on; CheckpointError where an argument contradicts it."""
    found = read_config(folder)
    if arguments.env not in (None, found.env):
        raise _contradicted(folder, "env", found.env, arguments.env)  # options of the one mean nothing in the other
    named = {
        **{name: getattr(arguments, name) for name in ("agent", "agents", "preset", "budget")},
        "stages": None if arguments.stages is None else tuple(items(arguments.stages)),
        "seeds": None if arguments.seeds is None else seeds_of(arguments.seeds),
    }
    for name, asked in named.items():
        if asked not in (None, has := getattr(found, name)):
            raise _contradicted(folder, name, has, asked)
    asked = changed(found, arguments)
    if asked.demonstrations.keys() != found.demonstrations.keys():  # named by their files, not by what these hold
        raise _contradicted(folder, "demonstrations", tuple(found.demonstrations), tuple(asked.demonstrations))
    found = replace(found, workers=asked.workers, unlearnt=asked.unlearnt)
    for path, (has, requested) in diff(found, asked).items():
        if requested != (has := _usual(found, path) if has is None else has):
            raise _contradicted(folder, path, has, requested)
    return found


def changed(config: RunConfig, arguments: RunArguments) -> RunConfig:
    """Return a configuration with the values of the flags."""
    known = {**config.entry.options, **config.env_options}
    options = parse_env_options(arguments.env_option, config.entry, stage_flag="--stages")
    differing = {name: value for name, value in options.items() if value != known[name]}
    simple = {
        "team_reward": arguments.team_reward,
        "share_parameters": _switch(arguments.share_parameters, arguments.no_share_parameters),
        "demonstrations": None if arguments.demonstrations is None else digests(items(arguments.demonstrations)),
        "initial": arguments.initial,
        "workers": None if arguments.workers is None else _workers(arguments.workers, config),
        "env_options": {**config.env_options, **differing},
        "evaluation": replace(
            config.evaluation, **_given({"report_games": arguments.games, "every": arguments.evaluate_every})
        ),
    }
    config = replace(config, **_given(simple))
    for name, value in assignments(filter(None, [arguments.network]), "--network"):
        config = assign_network(config, name, value)
    for name, value in assignments(filter(None, [arguments.learning]), "--learning"):
        config = assign_learners(config, name, value)
    for path, value in assignments(arguments.set, "--set"):
        config = assign(config, path, value)
    if (bf16 := _switch(arguments.bf16, arguments.no_bf16)) is not None:
        config = config.with_learners(lambda learner: replace(learner, bf16=bf16))
    return config if arguments.contrast is None else with_contrast(config, arguments.contrast)


def with_contrast(config: RunConfig, weight: float) -> RunConfig:
    """Set the weight of the contrastive loss in every phase whose learner has minibatches, which it compares."""
    if not any(has(phase.learner, "minibatches") for _, phase in config.walk()):
        raise ConfigurationError(f"preset {config.preset!r} learns without minibatches: leave out --contrast")

    def change(learner: AlgorithmConfig) -> AlgorithmConfig:
        same = learner.weights.get(CONTRAST, 0.0) == weight or not has(learner, "minibatches")
        return learner if same else replace(learner, weights={**learner.weights, CONTRAST: weight})

    return config.with_learners(change)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _workers(asked: int | str | None, config: RunConfig) -> int | str:
    return choose_workers(asked, config.resolve().games.config)


def _usual(config: RunConfig, path: str) -> Any:
    """The value of an option that a run may leave to its default."""
    part, name = path.split(".")[0], path.split(".")[-1]
    if part == "env_options":
        return {**config.entry.options, **config.env_options}[name]
    if part == "network":
        return network_options(config).get(name)
    return {CONTRAST: 0.0, **config.make_network().loss_weights}.get(name) if ".weights." in path else None


def _contradicted(folder: Path, name: str, has: object, asked: object) -> CheckpointError:
    return CheckpointError(
        f"the run in {folder} has {name} {_show(has)}, not {_show(asked)}: resume it without that option, or name "
        "another folder with --out"
    )


def _switch(on: bool, off: bool) -> bool | None:
    """Return the value of a pair of switches; None where neither was typed."""
    return on if on or off else None


def seeds_of(text: str) -> tuple[int, ...]:
    """Return the seeds behind --seeds; ConfigurationError for anything but integers."""
    try:
        return tuple(map(int, items(text)))
    except ValueError:
        raise ConfigurationError(f"--seeds takes integers separated by commas, got {text!r}: type e.g. 0,1,2") from None


def _show(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def interrupted(arguments: Arguments, line: CommandLine) -> str:
    """Return the sentence after Ctrl-C: how the run goes on."""
    folder = run_folder(arguments)
    if not RunFolder(folder).holds_run:
        return "stopped before the run began"
    return f"stopped; the state is saved, go on with: {_resuming(arguments, line, folder)}"


def _resuming(arguments: Arguments, line: CommandLine, folder: Path) -> CommandLine:
    """Return the command by which a run goes on."""
    only = () if arguments.only_seeds is None else ("--only-seeds", arguments.only_seeds)
    return CommandLine(line.prog, ("--out", str(folder), "--resume", *only, *computed_as(arguments)))


def computed_as(arguments: RunArguments) -> tuple[str, ...]:
    """Return the arguments by which a command that goes on computes as before."""
    device = () if arguments.device == "auto" else ("--device", arguments.device)
    threads = () if arguments.threads is None else ("--threads", str(arguments.threads))
    return (*arguments.repeated(), *device, *threads)
