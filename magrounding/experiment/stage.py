"""StageSession: one phase of a stage of one seed at work. What happens around it is the business of `SeedRun`."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magrounding.agents.building import build_policy, freeze
from magrounding.agents.own_defaults import own_defaults
from magrounding.errors import ConfigurationError, check_choice
from magrounding.experiment.beginning import load_partners
from magrounding.experiment.plan import Segment
from magrounding.progress import Display
from magrounding.run_folder import SeedFolder
from magrounding.teams.actor import make_expert
from magrounding.teams.player import Player
from magrounding.threads import active_plan, map_agents
from magrounding.training.algorithm import Teaching
from magrounding.training.clock import Clock
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.demonstrations import Demonstrations, find_demonstrations
from magrounding.training.ppo import PPOConfig
from magrounding.training.recording import RECORDING_SEED, record
from magrounding.training.rollout import FinishedEpisodes, Rollout, RolloutWorker
from magrounding.training.teacher import Teacher

HANGING_SECONDS = 60.0
"""Seconds without an answer after which a simulator's worker is replaced."""
RECORDED_AT_ONCE = 64
"""Games that an expert plays at once while it is recorded."""
WEIGHTS, GAMES, ACTIONS, TEACHER, SEGMENTS = range(5)
"""Purposes of derived seeds."""


def resolve_device(name: str) -> torch.device:
    """The device that a name stands for; ConfigurationError for one that is not there."""
    check_choice("device", name, ("auto", "cpu", "cuda"))
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("device 'cuda' was asked for, but torch sees no GPU: use 'auto' or 'cpu'")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def derive_seed(*path: int) -> int:
    """A 32-bit seed from a run's seed and what it is for."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


class StageSession:
    """A phase of a stage in training: its games, players and learners. The games begin with `start` or `resume`.

    Args:
        segment: what is trained.
        seed: the run's seed.
        device: where the networks are.
        clock: where wall time is booked.
        folder: of the seed's run: demonstrations that the phase records are kept there; None: not at all.
        display: what the person sees of such a recording.

    Attributes:
        segment: what is trained.
        vec: its games.
        learners: one, or one for each agent.
        players: one for each agent.
        source: of rollouts.
        teacher: labels the games; None of demonstrations and of learners without one.
        rollout: the last, before it is learnt from; None: there is none yet.
    """

    def __init__(
        self,
        segment: Segment,
        seed: int,
        device: torch.device,
        clock: Clock | None = None,
        folder: SeedFolder | None = None,
        display: Display | None = None,
    ) -> None:
        settings, phase = segment.config, segment.phase
        self.settings, self.segment, self.phase = settings, segment, phase
        self.seed, self.clock = seed, clock or Clock()
        self._faults = 0
        place, config, num_envs = (segment.stage.index, segment.number), phase.learner, phase.num_envs
        self._games_seed = derive_seed(seed, GAMES, *place)
        how = {"num_threads": active_plan().world, "workers": settings.workers, "timeout": HANGING_SECONDS}
        self.vec = segment.games.make_vec(num_envs, **how)
        self.learners = []
        for i in range(settings.num_learners):
            drawn_from = derive_seed(seed, WEIGHTS, i)
            policy = build_policy(settings.agent, self.vec.spec, settings.network, drawn_from).to(device)
            freeze(policy, phase.frozen)
            self.learners.append(config.make_learner(policy, self.vec.spec, num_envs, drawn_from))
        policies = [self.learners[0 if settings.share_parameters else i].policy_of(i) for i in settings.learning_agents]
        if settings.against:
            policies += [partner.to(device) for partner in load_partners(settings.resolve())]
        self.players = []
        for i, policy in enumerate(policies):
            generator = torch.Generator().manual_seed(derive_seed(seed, ACTIONS, *place, i))
            self.players.append(Player(policy, self.vec.spec, num_envs, generator, bf16=config.bf16))
        self.teacher: Teacher | None = None
        self.source = self._make_source(derive_seed(seed, TEACHER, *place), folder, display or Display(quiet=True))
        self.rollout: Rollout | None = None

    def _make_source(
        self, seed: int, folder: SeedFolder | None, display: Display
    ) -> RolloutWorker | DemonstrationSource:
        """Return what gives the phase's rollouts: demonstrations, or games that its agents play, perhaps labelled.

        Demonstrations are the run's files, or games of the expert, which are recorded once and kept in `folder`.
        """
        settings, config, vec = self.settings, self.phase.learner, self.vec
        teaching = config.teaching
        common = config.unroll, self.clock, settings.team_reward
        if teaching is not None:
            shown = None
            if settings.demonstrations:
                shown = find_demonstrations(settings.demonstrations, vec)[1]
            elif teaching.demonstrations:
                since = time.perf_counter()
                path = None if folder is None else folder.demonstrations(self.segment.stage.name)
                shown = _recorded(self.segment, teaching, seed, path, display)
                self.clock.add("teaching", since)
            if shown is not None:
                carry = teaching.carry_memory
                return DemonstrationSource(shown, self.players, vec.num_envs, *common, carry_memory=carry)
            self.teacher = Teacher(make_expert(vec, teaching.oracle), teaching.noise, seed)
        cut = config.segment if isinstance(config, PPOConfig) else 0
        games = vec.num_envs * (settings.agents if settings.share_parameters else 1)
        shared = all(text.shared for text in vec.spec.texts)
        passes = self.teacher is not None and shared and all(each.takes_passes(games) for each in self.learners)
        return RolloutWorker(vec, self.players, *common, config.needs, self.teacher, cut, passes)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of a rollout."""
        return self.vec.num_envs * self.phase.learner.unroll

    def start(self) -> None:
        """Begin the phase's games."""
        self.source.start(self._games_seed)

    def resume(self, games: dict[str, np.ndarray], steps: int) -> None:
        """Go on with the games of a checkpoint, after so many environment steps of the run.

        Games that cannot be kept begin anew, with seeds that those steps decide.
        """
        if not games:
            for learner in self.learners:
                learner.drop_open_episodes()
        self.source.resume(games, derive_seed(self._games_seed, steps))

    def iterate(self, steps: int) -> tuple[FinishedEpisodes, list[dict[str, float]]]:
        """One rollout and one update of each learner.

        Args:
            steps: environment steps of the rate's schedule so far.

        Returns:
            the games that ended, and each learner's losses, with what the log is to hold of its play.

        Raises:
            Diverged: a loss, a gradient or probabilities that are not finite.
        """
        for learner in self.learners:
            learner.explore(steps)
        rollout = self.rollout = self.source.collect(self.phase.learner.beta(steps), steps)
        since = time.perf_counter()
        trajectories = rollout.joined() if self.settings.share_parameters else rollout.trajectories

        @own_defaults()
        def update(i: int) -> dict[str, float]:
            return {**self.learners[i].update(trajectories[i], steps), **trajectories[i].metrics}

        losses = list(map_agents(update, range(len(self.learners))))
        self.clock.add("learning", since)
        return rollout.episodes, losses

    def weights(self) -> list[dict[str, torch.Tensor]]:
        """The state dict of each agent."""
        return [player.policy.state_dict() for player in self.players]

    def new_faults(self) -> list[dict[str, Any]]:
        """Simulators that died or hung and were replaced since the last call: worker, reason and games lost."""
        faults = getattr(self.vec, "faults", [])
        new, self._faults = faults[self._faults :], len(faults)
        return [{"worker": fault.worker, "reason": fault.reason, "rows": list(fault.rows)} for fault in new]

    def close(self) -> None:
        self.vec.close()


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
