"""The curriculum: one run of several seeds, from its settings to its report.

`SeedRun.run` goes from phase to phase and stops a seed at a gate that is missed; `SeedRun._train` ends phases.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from pathlib import Path

from magrounding.agents.own_defaults import own_defaults
from magrounding.experiment.beginning import PARTS, begin, check_run, choose_seeds, go_on
from magrounding.experiment.callbacks import Callback
from magrounding.experiment.config import RunConfig
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.phase import NotLearnt
from magrounding.experiment.reports.run import write_report
from magrounding.experiment.seed_run import SeedRun
from magrounding.experiment.stage import resolve_device
from magrounding.owner import RunOwner
from magrounding.progress import Display
from magrounding.registry import SERVICES, service
from magrounding.run_folder import RunFolder, entry_of
from magrounding.schema import Count
from magrounding.threads import plan_threads, using


@own_defaults()
def run_curriculum(
    settings: RunConfig,
    folder: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    threads: int | None = None,
    display: Display | None = None,
    command: str = "",
    seeds: Collection[int] | None = None,
    trackers: Sequence[str] | None = None,
    project: str | None = None,
    callbacks: Sequence[Callback] = (),
) -> RunFolder:
    """Train every seed of a run, one after the other, and write the report.

    Several processes may each train some of the seeds of one run. `seeds=()` only begins it; when all have ended, a
    call without `seeds` writes the report. How minibatches are divided is settled as a run begins, so weights are the
    same to the bit on however many threads it goes on.

    Args:
        settings: what to train; of a resumed run, what `read_config` found.
        folder: of the run; it must not hold one yet, unless `resume`.
        resume: go on where an earlier process stopped.
        device: "auto", "cpu" or "cuda".
        threads: to compute with; by default the cores that this process may run on.
        display: what the person sees.
        command: the command line, for the report.
        seeds: those to train, without a report; of a run that has begun.
        trackers: ids of those that show the run; by default those that it began with, or TensorBoard.
        project: under which they show it; by default the one that it began with, or "magrounding".
        callbacks: what else is told of each seed's start, updates, evaluations, checkpoints and end.

    Returns:
        The files of the run.

    Raises:
        CheckpointError: the folder is in the way, or not a run's, or damaged, or another process trains the same seed.
        ConfigurationError: settings that cannot work.
        Diverged: learning came to numbers that are not finite; the last checkpoint is of before.
        MissingExtra: a learner needs a package that is not installed.
        NotLearnt: seeds stopped at a gate, now or before (`RunConfig.unlearnt`); the others are learnt, and the report
            is written.
        KeyboardInterrupt: after Ctrl-C, SIGTERM or SIGHUP; the state is saved.
        OSError: the disk refused; the last checkpoint is whole.
    """
    run, where, shown = RunFolder(folder), resolve_device(device), display or Display()
    chosen = settings.seeds if seeds is None else choose_seeds(seeds, settings, resume)
    began = run.config() if resume else {}
    plan = plan_threads(
        settings.agents,
        settings.max_envs,
        learners=settings.num_learners,
        threads=threads,
        parts=entry_of(began, PARTS, Count) if PARTS in began else None,
        cuda=where.type == "cuda",
    )
    cores = f"{plan.cores} thread{'s' if plan.cores > 1 else ''}"
    shown.say(f"{settings.title} · {where.type}, {cores} · {run}")
    demonstrators = check_run(settings)  # what cannot work comes to light before anything is written
    if not resume:
        run.refuse_foreign()
    tracked = trackers or "tracking" in SERVICES  # trackers that are named without that extension are an error
    senders = [service("tracking").of(began, trackers, project, shown.say)] if tracked else []
    several = len(settings.seeds) > 1
    with nullcontext() if seeds and several else RunOwner(run):
        if resume:
            go_on(settings, run)
        else:
            about = {"command": command, "demonstrators": demonstrators, PARTS: plan.parts}
            for sender in senders:
                about |= sender.begun
            begin(settings, run, about)
        if not seeds:
            run.remove_partial(below=not several)
        with StopRequest() as stop, using(plan), shown:
            beside = *senders, *callbacks
            unlearnt: list[str] = []
            for seed in chosen:
                own = RunFolder(run.seed(seed, len(settings.seeds)).path)
                with RunOwner(own, f"seed {seed}") if several else nullcontext():
                    own.remove_partial()
                    try:
                        SeedRun(settings.resolve(), run, seed, where, shown, stop, beside).run()
                    except NotLearnt as error:
                        unlearnt.append(str(error))
            if seeds is None:
                shown.say("playing the comparison games of other players, writing the report")
                with stop.immediate():
                    write_report(run, shown)
            if unlearnt:
                raise NotLearnt(". ".join(unlearnt))
    return run
