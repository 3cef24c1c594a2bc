"""Train a team through a curriculum: `magrounding train --env ma_rtfm --agents 3 env.size=10`."""

from __future__ import annotations

import shlex
import sys
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from magrounding.cli.command import CommandLine, flags, items
from magrounding.cli.options import (
    ENV,
    GAMES,
    Asked,
    assign_paths,
    assignments,
    choose_workers,
    loss_weights,
    named_trackers,
    parse_env_options,
    refused_as,
)
from magrounding.cli.run_arguments import Arguments, RunArguments
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.beginning import check_costs_to_go
from magrounding.experiment.config import RunConfig, make_config, read_config
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.jobs.job import check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.experiment.jobs.seeds import seed_jobs
from magrounding.experiment.phase import NotLearnt
from magrounding.experiment.plan import Segment
from magrounding.experiment.presets import default_preset
from magrounding.experiment.reports.run import outcome_table, plan_table
from magrounding.experiment.results import RunResults, find_results
from magrounding.experiment.stage import StageSession
from magrounding.experiment.tables import say
from magrounding.progress import Display
from magrounding.run_folder import RunFolder
from magrounding.schema import diff, dump, options_of
from magrounding.threads import plan_threads, using
from magrounding.training.demonstrations import digests

LONG = 10_000_000
"""Environment steps from which on a person is asked before a run begins."""

REFUSED = "mend that, and a run goes on with --resume"


def run(arguments: Arguments, line: CommandLine) -> None:
    """Do what the arguments say; JobsFailed where seeds that train side by side do not end well."""
    folder = arguments.out or default_folder(arguments)
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
    resume, some, plan = arguments.resume, arguments.only_seeds is not None or arguments.prepare, config.resolve()
    if not (arguments.quiet or resume):
        print(networks_of(config), flush=True)
    steps = sum(each.phase.until.steps or 0 for each in plan.segments)
    if not resume and (arguments.plan or (steps > LONG and not (some or arguments.yes))):
        say(plan_table(plan, partial(seconds_per_step, threads=arguments.threads)).markdown())
        if arguments.plan or not _agreed(steps):
            return
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


def seconds_per_step(segment: Segment, threads: int | None) -> float:
    """Return the seconds of an environment step of training on the CPU, measured for a second or for one update."""
    settings, num_envs = segment.config, segment.phase.num_envs
    plan = plan_threads(settings.agents, num_envs, learners=settings.num_learners, threads=threads)
    with using(plan), closing(StageSession(segment, 0, torch.device("cpu"))) as session:
        session.start()
        session.iterate(0)  # compiles
        updates, since = 0, time.perf_counter()
        while not updates or time.perf_counter() - since < 1.0:
            session.iterate(0)
            updates += 1
        return (time.perf_counter() - since) / (updates * session.steps_per_update)


def _agreed(steps: int) -> bool:
    """Ask whether a long run begins; ConfigurationError where nobody answers."""
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{steps:,} steps are a run of days: add --yes, or a smaller --budget")
    return input(f"{steps:,} steps: begin? [y/N] ").strip().lower() in ("y", "yes")


def ended(run: RunFolder, found: RunResults) -> str:
    """Return what a person reads after training: results, the report's place, and commands that come next."""
    name = shlex.quote(str(run))
    return (
        f"\n{outcome_table(found).markdown()}\n\nreport: {run.report}\nnext: magrounding watch --run {name} "
        f"--out game.gif\n      magrounding evaluate --run {name}\n      magrounding serve --player mine=run:{name}"
    )


def words_of_job(arguments: RunArguments) -> tuple[str, ...]:
    """Return the arguments of a job that trains a part of what a command was asked for."""
    return flags(
        device=arguments.device,
        threads=arguments.threads_of_job(arguments.threads),
        workers=arguments.workers,
        tracker=arguments.tracker,
        project=arguments.project,
    )


def default_folder(arguments: RunArguments) -> Path:
    """Return the folder of a run for which --out names none."""
    config = chosen_preset(arguments)
    team = f"-{config.agents}" if config.entry.multi_agent else ""
    return Path("runs") / f"{config.env}-{config.agent}{team}-{config.preset}"


def chosen_preset(arguments: RunArguments) -> RunConfig:
    """Return the preset for what flags name, before any other option is known."""
    if arguments.env is None:
        raise ConfigurationError(
            "name an environment, e.g. --env ma_rtfm, or with --resume the run's folder with --out"
        )
    return make_config(
        arguments.env,
        arguments.agent,
        arguments.agents,
        arguments.preset or default_preset(arguments.env),
        None if arguments.stages is None else tuple(items(arguments.stages)),
        (0,) if arguments.seeds is None else seeds_of(arguments.seeds),
    )


def requested(arguments: RunArguments) -> RunConfig:
    """Return the configuration of a new run."""
    config = chosen_preset(arguments)
    if arguments.budget is not None:
        with refused_as(f"--budget {arguments.budget:g}"):
            config = config.with_budget(arguments.budget)
    asked = assignments(arguments.paths)
    if GAMES in asked:
        config = replace(config, evaluation=replace(config.evaluation, whole_games=None))
    config = changed(config, asked)
    workers = choose_workers(arguments.workers, config.resolve().games)
    if workers != config.workers:  # else what is resolved stays
        config = replace(config, workers=workers)
    if any(path.endswith(".cost_to_go") for path in asked):
        check_costs_to_go(config)  # presets ask for it in stages whose experts cannot tell, people do so by mistake
    return config


def resumed(arguments: Arguments, folder: Path) -> RunConfig:
    """Return the configuration of a run that goes on; CheckpointError where an argument contradicts it."""
    found = read_config(folder)
    named = {
        **{name: getattr(arguments, name) for name in ("env", "agent", "agents", "preset", "budget")},
        "stages": None if arguments.stages is None else tuple(items(arguments.stages)),
        "seeds": None if arguments.seeds is None else seeds_of(arguments.seeds),
    }
    for name, value in named.items():
        if value not in (None, has := getattr(found, name)):
            raise _contradicted(folder, name, has, value, f"--{name}")
    if arguments.workers is not None:
        found = replace(found, workers=choose_workers(arguments.workers, found.resolve().games))
    if arguments.paths:
        asked = changed(found, assignments(arguments.paths))
        found = replace(found, unlearnt=asked.unlearnt)
        for path, (has, value) in diff(completed(found), completed(asked)).items():
            raise _contradicted(folder, path, has, value, " ".join(arguments.paths))
    return found


def _contradicted(folder: Path, name: str, has: object, asked: object, typed: str) -> CheckpointError:
    return CheckpointError(
        f"the run in {folder} has {name} {has}, not {asked}: resume it without {typed}, or name another with --out"
    )


def completed(config: RunConfig) -> dict[str, Any]:
    """A run's config with all defaults that it has of its environment and its networks."""
    network = config.make_network()
    weights = loss_weights(network)
    config = config.with_learners(lambda learner: replace(learner, weights={**weights, **learner.weights}))
    return {
        **config.as_dict(),
        "env_options": {**config.entry.options, **config.env_options},
        "network": {**config.network, **dump(getattr(network, "config", {}))},
    }


def changed(config: RunConfig, asked: Asked) -> RunConfig:
    """Return a configuration with the options that were typed by their paths."""
    entry = config.entry
    env, others = ({k: v for k, v in asked.items() if k.startswith(ENV) is own} for own in (True, False))
    options = parse_env_options(env, entry, {entry.stage_option: "--stages"})
    groups = entry.evaluation.sets, *entry.evaluation.stage_sets.values()
    kept = {each.get("split", "train") for sets in groups for name, each in sets.items() if name != "train"}
    if options.get("split", "train") in kept - {"train"}:
        raise ConfigurationError(f"env.split={options['split']}: these games are kept for evaluation, train on others")
    config = replace(config, env_options={**config.env_options, **options})
    for name in others.keys() & options_of(RunArguments).keys():
        raise ConfigurationError(f"{others[name][0]}: --{name} chooses it, not a path")
    if "demonstrations" in others:
        config = replace(config, demonstrations=digests(items(others.pop("demonstrations")[1])))
    return assign_paths(config, others)


def networks_of(config: RunConfig) -> str:
    """Return which networks a run trains, in a line, and how to train the others."""
    if config.agents == 1 or any(phase.learner.joint for _, phase in config.walk()):
        return config.title
    if config.against:
        return f"{config.title}: agent 0, beside the others of {config.against}, who do not learn"
    shared = config.share_parameters
    other = "one for each agent" if shared else "one shared by all"
    trained = "one shared network" if shared else "a network for each agent"
    return f"{config.title}: {trained}; {other}: share_parameters={str(not shared).lower()}"


def seeds_of(text: str) -> tuple[int, ...]:
    """Return the seeds behind --seeds; ConfigurationError for anything but integers."""
    try:
        return tuple(map(int, items(text)))
    except ValueError:
        raise ConfigurationError(f"--seeds takes integers separated by commas, got {text!r}: type e.g. 0,1,2") from None


def interrupted(arguments: Arguments, line: CommandLine) -> str:
    """Return the sentence after Ctrl-C: how the run goes on."""
    folder = arguments.out or default_folder(arguments)
    if not RunFolder(folder).holds_run:
        return "stopped before the run began"
    words = "--out", str(folder), "--resume", *flags(only_seeds=arguments.only_seeds), *computed_as(arguments)
    return f"stopped; the state is saved, go on with: {CommandLine(line.prog, words)}"


def computed_as(arguments: RunArguments) -> tuple[str, ...]:
    """Return the arguments by which a command that goes on computes as before."""
    device = None if arguments.device == "auto" else arguments.device
    return *arguments.repeated(), *flags(device=device, threads=arguments.threads)
