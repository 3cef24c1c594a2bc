"""The curriculum: one run of several seeds, from its settings to its report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from magrounding.agents.building import freeze, make_policy
from magrounding.agents.own_defaults import own_defaults
from magrounding.agents.policy import CONTRAST, Policy
from magrounding.agents.weights import fit_weights, versions
from magrounding.capabilities import find_costs_to_go
from magrounding.envs.make import make_vec
from magrounding.errors import CheckpointError, ConfigurationError, Diverged, check_choice
from magrounding.experiment.amendment import amend, amendments, note_divergence
from magrounding.experiment.config import RunConfig, parse_config
from magrounding.experiment.device import resolve_device
from magrounding.experiment.evaluate import play_missing
from magrounding.experiment.interrupt import StopRequest
from magrounding.experiment.phase import NotLearnt, Phase
from magrounding.experiment.progress import Display
from magrounding.experiment.reports.run import write_report
from magrounding.experiment.results import TEXT
from magrounding.experiment.seed_run import SeedRun
from magrounding.experiment.stage import initial_policies
from magrounding.experiment.tracking import Sender, tracking_of
from magrounding.play.actor import check_oracle, has_expert, make_expert
from magrounding.play.demonstrations import find_demonstrations
from magrounding.play.origin import DescribedEnv
from magrounding.play.owner import RunOwner
from magrounding.play.recording import check_texts
from magrounding.play.run_folder import RunFolder, SeedFolder, entry_of
from magrounding.registry import is_simulator
from magrounding.schema import Count
from magrounding.spec import EnvSpec
from magrounding.threads import plan_threads, using
from magrounding.training.algorithm import Teaching

PARTS = "parts"
"""Entry of `config.json`: into how many parts minibatches are divided, which decides the last bits of sums."""


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
) -> RunFolder:
    """Train every seed of a run, one after the other, and write the report.

    Several processes may each train some of the seeds of one run. `seeds=()` only begins it; when all have ended, a
    call without `seeds` writes the report. How minibatches are divided is settled as a run begins, so weights are the
    same to the bit on however many threads it goes on.

    Args:
        settings: what to train; of a resumed run, what `read_config` found, or of one that diverged the same with other
            options of learners (`experiment.amendment`).
        folder: of the run; it must not hold one yet, unless `resume`.
        resume: go on where an earlier process stopped.
        device: "auto", "cpu" or "cuda".
        threads: to compute with; by default the cores that this process may run on.
        display: what the person sees.
        command: the command line, for the report.
        seeds: those to train, without a report; of a run that has begun.
        trackers: ids of those that show the run; by default those that it began with, or TensorBoard.
        project: under which they show it; by default the one that it began with, or "magrounding".

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
    chosen = settings.seeds if seeds is None else _chosen(seeds, settings, resume)
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
    tracking = tracking_of(began, trackers, project)
    several = len(settings.seeds) > 1
    with nullcontext() if seeds and several else RunOwner(run):
        if resume:
            _check_text(settings, run)
            if seeds and parse_config(run.config()).digest != settings.digest:
                raise CheckpointError("other options are for all seeds of a run: resume it without --only-seeds")
            amend(run, settings, command)
        elif run.holds_run:
            raise CheckpointError(f"{run} exists already: add --resume to go on with it, or name another with --out")
        else:
            about = {"versions": versions(), "command": command, "demonstrators": demonstrators, PARTS: plan.parts}
            about |= tracking.to_dict()
            about |= {TEXT: text} if (text := settings.describe(settings.stages[0]).source) else {}
            run.write_config({**settings.as_dict(), **about})
        if not seeds:
            run.remove_partial(below=not several)
        with StopRequest() as stop, using(plan), shown:
            before = [each.before for each in amendments(run.config())]
            send = partial(Sender, tracking, settings, run, shown.say)
            unlearnt: list[str] = []
            for seed in chosen:
                own = run.seed(seed, len(settings.seeds))
                with _owner_of_seed(seed, own) if several else nullcontext():
                    try:
                        SeedRun(settings, seed, own, where, shown, stop, send, before).run()
                    except NotLearnt as error:
                        unlearnt.append(str(error))
                    except Diverged as error:
                        note_divergence(run, seed, error)
                        raise
            if seeds is None:
                _write_report(settings, run, shown, stop)
            if unlearnt:
                raise NotLearnt(". ".join(unlearnt))
    return run


def _write_report(settings: RunConfig, run: RunFolder, shown: Display, stop: StopRequest) -> None:
    """Play the games of others that are missing, and write the report."""
    shown.say("playing the comparison games of other players, writing the report")
    with stop.immediate():
        play_missing(settings, run, shown)
        write_report(run)


def _chosen(seeds: Collection[int], settings: RunConfig, resume: bool) -> tuple[int, ...]:
    """Some of a run's seeds; ConfigurationError for others, and before the run has begun."""
    for seed in seeds:
        check_choice("seed of the run", str(seed), map(str, settings.seeds))
    if seeds and not resume:
        raise ConfigurationError("some of the seeds are trained in a run that has begun: prepare it first")
    return tuple(seeds)


@contextmanager
def _owner_of_seed(seed: int, folder: SeedFolder) -> Iterator[None]:
    """Keep other processes from training the same seed of the run while entered."""
    own = RunFolder(folder.path)
    with RunOwner(own, f"seed {seed}"):
        own.remove_partial()
        yield


def check_run(settings: RunConfig) -> dict[str, str]:
    """Refuse what cannot work in any stage of a run, before it writes or measures anything.

    Returns:
        Path → who played, of every file of demonstrations in use.

    Raises:
        MagroundingError: networks, learners, experts, games or files of demonstrations that cannot be, or are missing.
    """
    _check_learning(settings)
    if settings.initial:
        initial_policies(settings)
    demonstrators = _check_teaching(settings)
    _check_games(settings)
    return demonstrators


def _check_games(settings: RunConfig) -> None:
    """Make one game of each kind that a run of a simulator is to play, as that alone tells what it lacks."""
    known: list[dict[str, Any]] = []
    for stage, phase in settings.walk():
        sets = (settings.evaluation.selection_set, *settings.evaluation_sets(stage, phase))
        for options in (settings.phase_options(stage, phase), *(settings.stage_options(stage, each) for each in sets)):
            config = settings.entry.configure(**options)
            if options not in known and is_simulator(config):
                known.append(options)
                config.make_env(None).close()


def _check_text(settings: RunConfig, run: RunFolder) -> None:
    """Raise CheckpointError where a run began with other sentences than its files hold now."""
    before, now = run.config().get(TEXT), settings.describe(settings.stages[0]).source
    if before is not None and before != now:
        raise CheckpointError(f"the run in {run} read {before}, which is {now} now: restore the files, or train again")


def _check_learning(settings: RunConfig) -> None:
    """Make the networks and learners of all phases once, and forget them; worlds that are alike need one network."""
    networks: dict[tuple[EnvSpec, tuple[str, ...]], Policy] = {}
    network: Policy | None = None
    for stage, phase in settings.walk():
        spec, frozen, learner = settings.describe(stage, **phase.env_options), phase.frozen, phase.learner
        if (spec, frozen) not in networks:
            networks[spec, frozen] = make_policy(settings.agent, spec, **settings.network)
            freeze(networks[spec, frozen], frozen)
        before, network = network, networks[spec, frozen]
        if before is not None and before is not network:
            fit_weights(network, before.state_dict(), f"what is learnt before {settings.stage_name(stage)}")
        if learner.weights.get(CONTRAST) and not network.contrasts:
            raise ConfigurationError(
                f"agent {settings.agent!r} as it is configured has no contrastive loss, by which {stage} is to be "
                "learnt: set its weight to 0 (learner.weights.contrast=0), or other options of the network"
            )
        learner.require()
        try:
            learner.make_learner(network, spec, phase.num_envs, seed=0)
        except ValueError as error:  # also an optimiser's, of a rate that cannot be
            raise ConfigurationError(f"{learner.algorithm} cannot learn {stage} with its options: {error}") from error


def check_costs_to_go(settings: RunConfig) -> None:
    """Raise ConfigurationError where phases learn from costs of moves, and no expert of the run knows them.

    For options that a person chooses: presets have it in every stage, and the experts of some do not know costs.
    """
    asking = [each for each in settings.taught() if each[-1].costs_to_go]
    if asking and not any(_judges(settings, *each) for each in asking):
        raise ConfigurationError(
            "cost_to_go takes an expert that says what each move costs, and none teaches in any stage of this run: "
            "leave it out"
        )


def _judges(settings: RunConfig, stage: str, phase: Phase, teaching: Teaching) -> bool:
    """Return whether the expert of a phase knows costs of moves; demonstrations do not keep them."""
    if settings.demonstrations or teaching.demonstrations:
        return False
    with closing(make_vec(settings.env, 1, **settings.phase_options(stage, phase))) as vec:
        return find_costs_to_go(make_expert(vec, teaching.oracle)) is not None


def _check_teaching(settings: RunConfig) -> dict[str, str]:
    """Refuse phases without an expert; return path → who played, of every file of demonstrations in use."""
    shared = settings.share_parameters and settings.agents > 1
    for stage, phase, teaching in settings.taught():
        check_oracle(settings.env, teaching.oracle)
        if teaching.demonstrations and not settings.demonstrations:
            check_texts(settings.describe(stage, **phase.env_options))
        if shared and teaching.carry_memory and (settings.demonstrations or teaching.demonstrations):
            raise ConfigurationError("carry_memory=true takes a network for each agent: add share_parameters=false")
    if not settings.demonstrations:
        for stage, phase, _ in settings.taught():
            if not has_expert(settings.env, settings.describe(stage, **phase.env_options)):
                where = f" in stage {stage!r}" if stage else ""
                raise ConfigurationError(
                    f"{settings.env} has no expert that can teach{where}: learn from demonstrations=FILES, or without "
                    "imitation"
                )
        return {}
    return _check_demonstrations(settings)


def _check_demonstrations(settings: RunConfig) -> dict[str, str]:
    """Return path → who played, of every file of demonstrations in use; see `_check_teaching`."""
    if not settings.imitates:
        raise ConfigurationError(
            f"preset {settings.preset!r} has no phase that learns from demonstrations: take another, or leave them"
        )
    demonstrators = {}
    for stage, phase, _ in settings.taught():
        until = phase.until
        if until.win_rate is not None and (until.rule == "all" or until.steps is until.reading is None):
            raise ConfigurationError(
                f"the phase of imitation of {stage} waits for wins, but with demonstrations no game is played: "
                "let it end after steps"
            )
        options, spec = settings.phase_options(stage, phase), settings.describe(stage, **phase.env_options)
        games = DescribedEnv(settings.env, options, spec)
        path, demonstrations = find_demonstrations(settings.demonstrations, games)
        demonstrators[str(path)] = demonstrations.header.played_by
    return demonstrators
