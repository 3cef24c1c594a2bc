"""StageSession: one phase of a stage of one seed at work. What happens around it is the curriculum's business."""

from __future__ import annotations

import copy
import time
from collections import ChainMap
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.building import build_policy, freeze
from magrounding.agents.own_defaults import own_defaults
from magrounding.agents.policy import Policy, evaluating
from magrounding.agents.weights import fit_weights
from magrounding.envs.vector import WorldVectorEnv
from magrounding.errors import CheckpointError, ConfigurationError
from magrounding.experiment.checkpoint import (
    pack_arrays,
    pack_learners,
    pack_players,
    unpack_arrays,
    unpack_learners,
    unpack_players,
)
from magrounding.experiment.compiling import Task, call_expert, call_network, compiled_beside
from magrounding.experiment.config import read_config
from magrounding.experiment.divergence import check_answers, check_losses
from magrounding.experiment.plan import Plan, Segment
from magrounding.experiment.progress import Display
from magrounding.experiment.segmenting import learn_segments_of, segmenters_of
from magrounding.play.actor import make_expert
from magrounding.play.demonstrations import Demonstrations, find_demonstrations
from magrounding.play.evaluate import TRUE_MANUAL, Evaluation, ProgressCallback, evaluate_games
from magrounding.play.loading import load_team
from magrounding.play.player import Player
from magrounding.play.recording import RECORDING_SEED, record
from magrounding.play.run_folder import SeedFolder
from magrounding.play.team import Team
from magrounding.pretrained import find_run
from magrounding.registry import algorithm_entry
from magrounding.threads import active_plan, map_agents
from magrounding.training.algorithm import Teaching
from magrounding.training.clock import Clock
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.learner import Learner
from magrounding.training.ppo import PPOConfig
from magrounding.training.rollout import FinishedEpisodes, RolloutWorker
from magrounding.training.teacher import Teacher
from magrounding.training.trajectory import Trajectory

HANGING_SECONDS = 60.0
"""Seconds without an answer after which a simulator's worker is replaced."""
RECORDED_AT_ONCE = 64
"""Games that an expert plays at once while it is recorded."""

WEIGHTS, GAMES, ACTIONS, TEACHER, SEGMENTS = range(5)
"""Purposes of derived seeds."""


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
        teacher: labels the games; None of demonstrations and of learners without one.
        source: of rollouts.
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
        settings, self.segment, self.phase = segment.config, segment, segment.phase
        self.settings = settings
        self.clock, self._display = clock or Clock(), display or Display(quiet=True)
        self._faults = 0
        place, config, num_envs = (segment.stage.index, segment.number), self.phase.learner, self.phase.num_envs
        self._games_seed = derive_seed(seed, GAMES, *place)
        self._segments_seed = None if segment.number else derive_seed(seed, SEGMENTS, place[0])
        self._how = {"num_threads": active_plan().world, "workers": settings.workers}
        self.vec = segment.games.make_vec(num_envs, timeout=HANGING_SECONDS, **self._how)
        self.learners: list[Learner] = []
        for i in range(settings.num_learners):
            drawn_from = derive_seed(seed, WEIGHTS, i)
            policy = build_policy(settings.agent, self.vec.spec, settings.network, drawn_from).to(device)
            freeze(policy, self.phase.frozen)
            self.learners.append(config.make_learner(policy, self.vec.spec, num_envs, drawn_from))
        self.players = []
        for i in range(settings.agents):
            policy = self.learners[0 if settings.share_parameters else i].policy_of(i)
            generator = torch.Generator().manual_seed(derive_seed(seed, ACTIONS, *place, i))
            self.players.append(Player(policy, self.vec.spec, num_envs, generator, bf16=config.bf16))
        self.teacher: Teacher | None = None
        self._played: list[Trajectory] = []
        self.source = self._make_source(derive_seed(seed, TEACHER, *place), folder)

    @property
    def steps_per_update(self) -> int:
        """Environment steps of a rollout."""
        return self.vec.num_envs * self.phase.learner.unroll

    def start(self) -> None:
        """Begin the phase's games; segmenters learn the stage's sentences before its first phase."""
        self._learn_segments()
        self._compile()
        self.source.start(self._games_seed)

    def follow_ramps(self, steps: int) -> None:
        """Set the options of the games that change within the phase, after so many of its environment steps."""
        if self.phase.ramps:
            cast(WorldVectorEnv, self.vec).adjust(**self.phase.ramped(steps))

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
        rollout = self.source.collect(self.phase.learner.beta(steps), steps)
        since = time.perf_counter()
        trajectories = rollout.joined() if self.settings.share_parameters else rollout.trajectories

        @own_defaults()
        def update(i: int) -> dict[str, float]:
            return {**self.learners[i].update(trajectories[i], steps), **trajectories[i].metrics}

        losses = list(map_agents(update, range(len(self.learners))))
        check_losses(losses)
        self._played = rollout.trajectories
        self.clock.add("learning", since)
        return rollout.episodes, losses

    def evaluate(
        self,
        evaluation_set: str,
        games: int,
        seed: int,
        greedy: bool = True,
        manual: str = TRUE_MANUAL,
        on_progress: ProgressCallback = lambda finished: None,
    ) -> Evaluation:
        """Play games of an evaluation set with the weights as they are; arguments as of `evaluate_games`."""
        since = time.perf_counter()
        team = self._team()
        with evaluating(*team.policies):
            result = evaluate_games(
                team,
                self.segment.stage.sets[evaluation_set],
                games,
                seed,
                greedy=greedy,
                manual=manual,
                on_progress=on_progress,
                **self._how,
            )
        self.clock.add("evaluation", since)
        return result

    @property
    def depends_on_names(self) -> bool:
        """Some network of the team depends on names (`Team`)."""
        return self._team().depends_on_names

    def state(self) -> dict[str, Tensor]:
        """Return the state that decides how the phase goes on, by name; Diverged where nothing could go on from it."""
        for player, trajectory in zip(self.players, self._played, strict=bool(self._played)):
            check_answers(player, trajectory)
        games = pack_arrays(self.source.snapshot(), "games/")
        beside = [pack_arrays(learner.snapshot(), f"beside_{i}/") for i, learner in enumerate(self.learners)]
        return {**pack_learners(self.learners), **pack_players(self.players), **games, **ChainMap(*beside)}

    def resume(self, tensors: dict[str, Tensor], source: Path, steps: int) -> None:
        """Go on exactly where `state` was taken, after so many environment steps.

        Games that cannot be kept begin anew, with seeds that those steps decide.
        """
        unpack_learners(tensors, self.learners, source)
        self._compile()
        for i, learner in enumerate(self.learners):
            learner.restore(unpack_arrays(tensors, f"beside_{i}/"))
        unpack_players(tensors, self.players)
        games = unpack_arrays(tensors, "games/")
        if not games:
            for learner in self.learners:
                learner.drop_open_episodes()
        self.source.resume(games, derive_seed(self._games_seed, steps))

    def trained(self) -> dict[str, Tensor]:
        """Copies of weights and optimiser states: what another phase can start from."""
        return pack_learners(self.learners)

    def inherit(self, tensors: dict[str, Tensor], source: Path, *, optimizer: bool = True) -> None:
        """Take over what `trained` gave."""
        unpack_learners(tensors, self.learners, source, optimizer=optimizer)

    def weights(self) -> list[dict[str, Tensor]]:
        """The state dict of each agent."""
        return [player.policy.state_dict() for player in self.players]

    def new_faults(self) -> list[dict[str, Any]]:
        """Simulators that died or hung and were replaced since the last call: worker, reason and games lost."""
        faults = getattr(self.vec, "faults", [])
        new, self._faults = faults[self._faults :], len(faults)
        return [{"worker": fault.worker, "reason": fault.reason, "rows": list(fault.rows)} for fault in new]

    def close(self) -> None:
        self.vec.close()

    def _team(self) -> Team:
        return Team([player.policy for player in self.players], self.vec.spec)

    def _learn_segments(self) -> None:
        """Let what finds statements in running text learn it, the same in all networks, before the first phase."""
        since, networks = time.perf_counter(), [each.module for each in self.learners]
        segmenters = segmenters_of([*networks, *(player.policy for player in self.players)])
        if segmenters and (seed := self._segments_seed) is not None:
            learnt = learn_segments_of(type(segmenters[0]), self.segment.stage, seed).state_dict()
            for each in segmenters:
                each.load_state_dict(learnt)
            self.clock.add("teaching", since)

    def _compile(self) -> None:
        """Run every kernel of a compiled world, its teacher and network once: the clock of training sees none compiled.

        Games begin anew afterwards, and the network is a copy: nothing of it remains.
        """
        if not isinstance(self.vec, WorldVectorEnv):
            return
        since = time.perf_counter()
        message = f"compiling {self.settings.env}, the first time on this machine: about 20 s on two idle cores"
        with compiled_beside(self._called_later(self.vec), lambda: self._display.say(message)):
            observation, info = self.vec.reset(seed=self._games_seed)
            self.vec.step(np.zeros((self.vec.num_envs, self.vec.num_agents), np.int64))
        if self.teacher is not None:
            self.teacher.label()
        call_network(copy.deepcopy(self.players[0].policy), self.vec.spec, observation, info.document)
        self.clock.add("starting", since)

    def _called_later(self, vec: WorldVectorEnv) -> list[Task]:
        """Tasks that call the kernels of network and teacher, without those of the world."""
        policy, teaching = self.players[0].policy, self.phase.learner.teaching
        tasks: list[Task] = []
        if next(policy.parameters()).device.type == "cpu":
            blank = vec.spec.allocate(vec.num_envs), np.zeros(vec.num_envs, np.int64)
            tasks.append((call_network, (policy, vec.spec, *blank)))
        if self.teacher is not None and teaching is not None:
            tasks.append((call_expert, (vec.id, vec.options, teaching.oracle)))
        return tasks

    def _make_source(self, seed: int, folder: SeedFolder | None) -> RolloutWorker | DemonstrationSource:
        """Demonstrations to learn from, or games that the agents play, labelled by a teacher where one is due."""
        config, teaching = self.phase.learner, self.phase.learner.teaching
        common = config.unroll, self.clock, self.settings.team_reward
        if teaching is not None:
            shown = self._demonstrations(teaching, seed, folder)
            if shown is not None:
                carry = teaching.carry_memory
                return DemonstrationSource(shown, self.players, self.vec.num_envs, *common, carry_memory=carry)
            self.teacher = Teacher(make_expert(self.vec, teaching.oracle), teaching.noise, seed)
        segment = config.segment if isinstance(config, PPOConfig) else 0
        games = self.vec.num_envs * (self.settings.agents if self.settings.share_parameters else 1)
        shared = all(text.shared for text in self.vec.spec.texts)
        passes = self.teacher is not None and shared and all(each.takes_passes(games) for each in self.learners)
        return RolloutWorker(self.vec, self.players, *common, config.needs, self.teacher, segment, passes)

    def _demonstrations(self, teaching: Teaching, seed: int, folder: SeedFolder | None) -> Demonstrations | None:
        """The games that a phase of imitation learns from: the run's files, or games of the expert, recorded once."""
        settings, games = self.settings, teaching.demonstrations
        if settings.demonstrations:
            return find_demonstrations(settings.demonstrations, self.vec)[1]
        if not games:
            return None
        path = None if folder is None else folder.demonstrations(self.segment.stage.name)
        if path is not None and path.exists():
            return Demonstrations.load(path)
        since, rows = time.perf_counter(), min(games, RECORDED_AT_ONCE)
        with (
            closing(self.segment.games.make_vec(rows, **self._how)) as vec,
            self._display.games(f"recording the expert: {self.segment.stage.name}", games) as advance,
        ):
            expert = make_expert(vec, teaching.oracle)
            shown = record(vec, expert, games, RECORDING_SEED + seed, "the expert", on_progress=advance)
        if path is not None:
            shown.save(path)
        self.clock.add("teaching", since)
        return shown


def initial_policies(plan: Plan) -> list[Policy]:
    """Return a policy for each agent, with the weights of the team that `RunConfig.initial` names.

    Raises:
        CheckpointError: no trained team there, or one that a team of this run could not go on from.
        ConfigurationError: other words or actions than the run's, or an algorithm whose state is more than a policy.
    """
    settings, first = plan.config, plan.segments[0]
    source, algorithm = settings.initial, first.phase.learner.algorithm
    if algorithm_entry(algorithm).own_agents:
        raise ConfigurationError(f"{algorithm} begins with weights of its own: leave out initial")
    team, found = load_team(source), read_config(find_run(source))
    for name in ("env", "agent", "agents", "share_parameters"):
        has, asked = getattr(found, name), getattr(settings, name)
        if has != asked:
            raise CheckpointError(f"the team of {source} has {name} {has}, this run {asked}: begin with another one")
    team.origin.check_games(first.games.spec, settings.env)
    for policy in team.policies:
        fit_weights(settings.make_network(), policy.state_dict(), source)
    return team.policies
