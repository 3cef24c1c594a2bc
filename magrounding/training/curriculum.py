"""The curriculum: one run of several seeds, from its settings to its report."""

from __future__ import annotations

from pathlib import Path

from magrounding.agents.team import CONFIG_FILE, seed_folder
from magrounding.agents.weights import versions
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.registry import make_vec
from magrounding.storage import read_json, write_json
from magrounding.threads import plan_threads, using
from magrounding.training.demonstrations import find_demonstrations
from magrounding.training.device import resolve_device
from magrounding.training.episode_replay import load_tianshou
from magrounding.training.interrupt import StopRequest
from magrounding.training.presets import IMITATE
from magrounding.training.progress import Display
from magrounding.training.qmix import QmixConfig
from magrounding.training.seed_run import SeedRun
from magrounding.training.settings import RunSettings
from magrounding.training.teacher import find_expert


def run_curriculum(
    settings: RunSettings,
    folder: Path,
    *,
    resume: bool = False,
    device: str = "auto",
    display: Display | None = None,
    command: str = "",
) -> None:
    """Train every seed of a run, one after the other, and write the report.

    Args:
        settings: what to train; of a resumed run, what `read_settings` found.
        folder: of the run; it must not hold one yet, unless `resume`.
        resume: go on where an earlier process stopped.
        device: "auto", "cpu" or "cuda".
        display: what the person sees.
        command: the command line, for the report.

    Raises:
        CheckpointError: the folder is in the way, or not a run's, or damaged.
        ConfigurationError: settings that cannot work.
        MissingExtra: a learner needs a package that is not installed.
        KeyboardInterrupt: after Ctrl-C; the state is saved.
        OSError: the disk refused; the last checkpoint is whole.
    """
    from magrounding.evaluation.report import write_report

    where = resolve_device(device)
    for stage, phase in settings.phases():  # bad options come to light before anything is written
        settings.entry.make_world(1, **{**settings.stage_options(stage), **phase.games})
        if isinstance(phase.learner, QmixConfig):
            load_tianshou()
    demonstrators = _check_teaching(settings)
    if resume:
        read_json(folder / CONFIG_FILE)
    else:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CheckpointError(f"{folder} exists already: add --resume to go on with it, or name another with --out")
        about = {"versions": versions(), "command": command, "demonstrators": demonstrators}
        write_json(folder / CONFIG_FILE, {**settings.to_dict(), **about})
    plan = plan_threads(settings.num_learners, settings.max_envs, cuda=where.type == "cuda")
    with StopRequest() as stop, using(plan) as parallel_map, display or Display() as shown:
        for seed in settings.seeds:
            own = seed_folder(folder, seed, len(settings.seeds))
            SeedRun(settings, seed, own, where, plan, parallel_map, shown, stop).run()
        shown.say("playing the comparison games of random and oracle, writing the report")
        with stop.immediate():
            write_report(folder)


def _check_teaching(settings: RunSettings) -> dict[str, str]:
    """Path → who played, of every file of demonstrations in use.

    Raises:
        CheckpointError: a file that is missing, changed, damaged, or of other games.
        ConfigurationError: nobody can teach a phase of imitation, or there is no such phase, or it would never end.
    """
    if not settings.demonstrations:
        if settings.imitates:
            find_expert(settings.env)
        return {}
    if not settings.imitates:
        raise ConfigurationError(
            f"preset {settings.preset.name!r} has no phase that learns from demonstrations: take another, or leave them"
        )
    demonstrators = {}
    for stage, phase in settings.phases():
        if phase.name == IMITATE:
            if phase.until.steps is None or (phase.until.rule == "all" and phase.until.win_rate is not None):
                raise ConfigurationError(
                    f"the phase of imitation of {stage} waits for wins, but with demonstrations nobody plays: "
                    "let it end after steps"
                )
            vec = make_vec(settings.env, 1, **settings.stage_options(stage))
            path, demonstrations = find_demonstrations(settings.demonstrations, vec)
            demonstrators[str(path)] = demonstrations.header.played_by
    return demonstrators
