"""Sources of a phase's rollouts: demonstrations, or games that its agents play, labelled by a teacher if one is due."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from magrounding.experiment.plan import Segment
from magrounding.experiment.progress import Display
from magrounding.play.actor import make_expert
from magrounding.play.demonstrations import Demonstrations, find_demonstrations
from magrounding.play.player import Player
from magrounding.play.recording import RECORDING_SEED, record
from magrounding.play.run_folder import SeedFolder
from magrounding.threads import active_plan
from magrounding.training.algorithm import Teaching
from magrounding.training.clock import Clock
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig
from magrounding.training.rollout import RolloutWorker
from magrounding.training.teacher import Teacher
from magrounding.vector import VectorEnv

RECORDED_AT_ONCE = 64
"""Games that an expert plays at once while it is recorded."""


def make_source(
    segment: Segment,
    vec: VectorEnv,
    learners: Sequence[Learner],
    players: Sequence[Player],
    seed: int,
    clock: Clock,
    folder: SeedFolder | None,
    display: Display,
) -> tuple[RolloutWorker | DemonstrationSource, Teacher | None]:
    """Make what gives a phase's rollouts, and the teacher who labels them.

    Demonstrations are the run's files, or games of the expert, which are recorded once and kept in `folder`.
    """
    settings, config, teacher = segment.config, segment.phase.learner, None
    teaching = config.teaching
    common = config.unroll, clock, settings.team_reward
    if teaching is not None:
        shown = None
        if settings.demonstrations:
            shown = find_demonstrations(settings.demonstrations, vec)[1]
        elif teaching.demonstrations:
            since, path = time.perf_counter(), None if folder is None else folder.demonstrations(segment.stage.name)
            shown = _recorded(segment, teaching, seed, path, display)
            clock.add("teaching", since)
        if shown is not None:
            carry = teaching.carry_memory
            return DemonstrationSource(shown, players, vec.num_envs, *common, carry_memory=carry), None
        teacher = Teacher(make_expert(vec, teaching.oracle), teaching.noise, seed)
    cut = config.segment if isinstance(config, PPOConfig) else 0
    games = vec.num_envs * (settings.agents if settings.share_parameters else 1)
    shared = all(text.shared for text in vec.spec.texts)
    passes = teacher is not None and shared and all(each.takes_passes(games) for each in learners)
    return RolloutWorker(vec, players, *common, config.needs, teacher, cut, passes), teacher


def _recorded(segment: Segment, teaching: Teaching, seed: int, path: Path | None, display: Display) -> Demonstrations:
    """Games of the expert like the segment's: from the file at `path`, or else recorded, and written there."""
    if path is not None and path.exists():
        return Demonstrations.load(path)
    games = teaching.demonstrations
    how = {"num_threads": active_plan().world, "workers": segment.config.workers}
    with (
        closing(segment.games.make_vec(min(games, RECORDED_AT_ONCE), **how)) as recorded,
        display.games("recording the expert", games) as advance,
    ):
        expert = make_expert(recorded, teaching.oracle)
        shown = record(recorded, expert, games, RECORDING_SEED + seed, "the expert", on_progress=advance)
    if path is not None:
        shown.save(path)
    return shown
