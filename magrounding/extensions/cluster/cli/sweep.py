"""Train a run at each of several points: `magrounding sweep --env rtfm --over learner.entropy=0.003,0.01,0.03`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import tyro
from msgspec import Meta

from magrounding.cli.command import PATHS, CommandLine
from magrounding.cli.options import assign_paths, assignments, named_trackers
from magrounding.cli.run_arguments import RunArguments
from magrounding.cli.train import chosen_preset, computed_as, requested, words_of_job
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.beginning import check_run
from magrounding.experiment.config import RunConfig
from magrounding.experiment.curriculum import run_curriculum
from magrounding.experiment.jobs.job import check_outcomes
from magrounding.experiment.jobs.runner import run_jobs
from magrounding.extensions.cluster.sweep.axis import (
    MOST_POINTS,
    Axis,
    grid,
    one_by_one,
    parse_axes,
    random_points,
    size_of,
)
from magrounding.extensions.cluster.sweep.jobs import SweepJobs
from magrounding.extensions.cluster.sweep.record import GRID, OPTUNA, RANDOM, Point, Sweep, SweepFolder, measured
from magrounding.extensions.cluster.sweep.report import REPORT_FILE, write_report
from magrounding.owner import owned
from magrounding.progress import Display
from magrounding.registry import SERVICES, service
from magrounding.run_folder import RunFolder
from magrounding.schema import flat

_SHOWN_EVERY = 100
REFUSED = "mend that, and a sweep goes on with --resume"
_ANEW = ("device", "threads", "workers", "quiet", "jobs", "cluster", "cpus_per_job", "gpus_per_job")
_ANEW += ("tracker", "project", "optuna", "out", "resume")
"""Arguments that a sweep may be resumed with; it has all others from its folder."""


@dataclass(frozen=True)
class Arguments(RunArguments):
    """Train a run at each point of a grid, at random points or at those that Optuna chooses, and compare them."""

    over: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """The path of an option and its values, as learner.entropy=0.003,0.01 or network.width=64,128; or a range, as
    learner.learning_rate=1e-4..1e-2:log; may be repeated."""
    random: Annotated[int, Meta(ge=1, le=MOST_POINTS)] | None = None
    """Number of points, drawn at random. (default: all of the grid)"""
    optuna: Annotated[int, Meta(ge=1, le=MOST_POINTS)] | None = None
    """Number of points, each chosen by Optuna from the results before; points that fall behind are given up. (default:
    all of the grid)"""
    out: Path | None = None
    """Folder of the sweep. (default: runs/sweep-<env>-<agent>)"""
    resume: bool = False
    """Go on with the sweep in the folder, as it was begun; --optuna may ask for more points."""


def run(arguments: Arguments, line: CommandLine) -> None:
    """Train what is left, and write the table and the figure."""
    folder = SweepFolder(_folder(arguments).absolute())
    display = Display(quiet=arguments.quiet)
    if arguments.jobs is None and arguments.cluster is None:
        arguments = replace(arguments, jobs=1)
    with owned(folder.path, "the sweep"):
        sweep = _resumed(arguments, folder) if arguments.resume else _new(arguments, folder, line, display)
        at = partial(at_point, sweep.config)
        begin = partial(_begin, arguments, str(line))
        jobs = SweepJobs(folder, sweep, at, begin, words_of_job(arguments))
        folder.write(sweep)
        try:
            places = arguments.places(folder.path, arguments.threads)
            check_outcomes(run_jobs(jobs.jobs(), places, display, ended=jobs.ended, stops=jobs.stops))
            _say_lacking(folder, sweep, display)
        finally:  # what is finished is worth a look, also where some failed or the sweep was stopped
            write_report(folder, sweep)
    print(f"{'' if arguments.quiet else 'report: '}{folder.path / REPORT_FILE}")


def at_point(config: RunConfig, values: Mapping[str, str]) -> RunConfig:
    """The options of a point; ConfigurationError for one that cannot be."""
    return assign_paths(config, assignments(f"{path}={value}" for path, value in values.items()))


def _new(arguments: Arguments, folder: SweepFolder, line: CommandLine, display: Display) -> Sweep:
    """The record of a new sweep, all of whose values can be."""
    if folder.file.exists():
        raise CheckpointError(f"{folder.path} has a sweep already: add --resume, or name another with --out")
    if any(each.name != folder.owner.name for each in folder.path.iterdir()):
        raise CheckpointError(f"{folder.path} exists already and holds no sweep: name another with --out")
    config, axes = measured(requested(arguments).ungated), parse_axes(arguments.over)
    assignments(arguments.over)  # refuses an option that is there twice
    if arguments.random is not None and arguments.optuna is not None:
        raise ConfigurationError("points are chosen by --random or by --optuna: leave out one")
    search = OPTUNA if arguments.optuna is not None else GRID if arguments.random is None else RANDOM
    points = [] if search == OPTUNA else grid(axes) if search == GRID else random_points(axes, arguments.random or 0)
    check_values(config, axes, display)
    return Sweep(
        over=arguments.over,
        search=search,
        count=int(min(arguments.optuna, size_of(axes))) if arguments.optuna else len(points),
        base=config.as_dict(),
        command=str(line),
        points=[Point(values) for values in points],
    )


def check_values(config: RunConfig, axes: Sequence[Axis], display: Display) -> None:
    """Refuse a value that cannot be, or that makes the same run as another; thousands of them take minutes."""
    tried, points = set[tuple[Any, ...]](), list(one_by_one(axes))
    with display:
        for k, values in enumerate(points):
            if k and k % _SHOWN_EVERY == 0:
                display.show("checking values", k / len(points), [f"{k:,} of {len(points):,}"], row="values")
            point = at_point(config, values)
            key = tuple((path, tuple(x) if isinstance(x, list) else x) for path, x in flat(point.as_dict()))
            if key in tried:
                named = ", ".join(f"{path}={value}" for path, value in values.items())
                raise ConfigurationError(f"--over makes the same run twice, the second time as {named}: leave it out")
            tried.add(key)
            check_run(point)
        display.hide("values")


def _resumed(arguments: Arguments, folder: SweepFolder) -> Sweep:
    """The record of a sweep that goes on."""
    given = dict(vars(arguments).items() - vars(Arguments()).items())
    for name in sorted(given.keys() - _ANEW):
        flag = arguments.paths[0] if name == PATHS else f"--{name.replace('_', '-')}"
        raise ConfigurationError(f"a sweep goes on with the options it began with: leave out {flag}")
    sweep = folder.read()
    if arguments.optuna is not None:
        if sweep.search != OPTUNA or arguments.optuna < sweep.count:
            raise ConfigurationError(f"the sweep has {sweep.count} points ({sweep.search}): leave out --optuna")
        sweep = replace(sweep, count=int(min(arguments.optuna, size_of(sweep.axes))))
    return sweep


def _begin(arguments: Arguments, command: str, settings: RunConfig, run: RunFolder) -> None:
    """Write the folder of a point's run."""
    run_curriculum(
        settings,
        run.path,
        device=arguments.device,
        threads=arguments.threads_of_job(arguments.threads),
        display=Display(quiet=True),
        command=command,
        seeds=(),
        trackers=named_trackers(arguments.tracker),
        project=arguments.project,
    )


def _say_lacking(folder: SweepFolder, sweep: Sweep, display: Display) -> None:
    """Say which trackers failed: what the processes of points say of them is not shown."""
    runs = [folder.run(number) for number in range(len(sweep.points))] if "tracking" in SERVICES else []
    without = [(tracker, run.path) for run in runs if run.holds_run for tracker in service("tracking").lacking(run)]
    for tracker in dict.fromkeys(tracker for tracker, _ in without):
        names = ", ".join(path.name for each, path in without if each == tracker)
        display.say(
            f"tracker {tracker}: it lacks a part of {names}; nothing of the runs is lost, send what is missing of each "
            f"with: magrounding track {folder.path}/POINT --tracker {tracker}"
        )


def _folder(arguments: Arguments) -> Path:
    """The folder of the sweep, new or old."""
    if arguments.out is not None:
        return arguments.out
    if arguments.resume:
        raise ConfigurationError("name the folder of the sweep that goes on with --out")
    config = chosen_preset(arguments)
    return Path("runs") / f"sweep-{config.env}-{config.agent}"


def interrupted(arguments: Arguments, line: CommandLine) -> str:
    """Return the sentence after Ctrl-C: how the sweep goes on."""
    folder = _folder(arguments)
    if not SweepFolder(folder).file.exists():
        return "stopped before the sweep began"
    again = CommandLine(line.prog, ("--out", str(folder), "--resume", *computed_as(arguments)))
    return f"stopped; the state is saved, go on with: {again}"
