"""StageSession: one phase of a stage of one seed at work. What happens around it is the curriculum's business."""

from __future__ import annotations

import copy
import time
from collections import ChainMap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magrounding.agents.building import build_policy, freeze
from magrounding.agents.policy import Policy
from magrounding.agents.weights import fit_weights
from magrounding.envs.make import make_vec
from magrounding.envs.vector import WorldVectorEnv
from magrounding.experiment.checkpoint import (
    pack_arrays,
    pack_learners,
    pack_players,
    restore_optimizer,
    select,
    unpack_arrays,
    unpack_learners,
    unpack_players,
)
from magrounding.experiment.compiling import Task, call_expert, call_network, compiled_beside
from magrounding.experiment.progress import Display
from magrounding.experiment.segmenting import learn_segments_of, segmenters_of
from magrounding.experiment.settings import RunSettings
from magrounding.play.actor import make_expert
from magrounding.play.demonstrations import Demonstrations, find_demonstrations
from magrounding.play.evaluate import TRUE_MANUAL, Evaluation, Tell, evaluate
from magrounding.play.player import Player
from magrounding.play.recording import RECORDING_SEED, record
from magrounding.play.team import Team
from magrounding.threads import active_plan, map_agents
from magrounding.training.algorithm import Teaching
from magrounding.training.clock import Clock
from magrounding.training.demonstration_source import DemonstrationSource
from magrounding.training.learner import Learner
from magrounding.training.rollout import FinishedEpisodes, RolloutWorker
from magrounding.training.teacher import Teacher

DEMONSTRATIONS_FILE = "demonstrations.npz"
HANGING_SECONDS = 60.0
"""Without an answer, after which a simulator's worker is replaced."""
RECORDED_AT_ONCE = 64
"""Games that an expert plays at once while it is recorded."""

WEIGHTS, GAMES, ACTIONS, TEACHER, SEGMENTS = range(5)
"""What a derived seed is for."""


def derive_seed(*path: int) -> int:
    """A 32-bit seed from a run's seed and what it is for."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


class StageSession:
    """Everything that is alive while a phase is trained.

    Args:
        settings: of the run.
        stage: name of the stage.
        phase: which of the stage's phases, counted from 0.
        seed: the run's seed.
        device: where the networks are.
        clock: where wall time is booked.
        folder: of the seed's run: demonstrations that the phase records are kept there; None: not at all.
        display: what the person sees of such a recording.
    """

    def __init__(
        self,
        settings: RunSettings,
        stage: str,
        phase: int,
        seed: int,
        device: torch.device,
        clock: Clock | None = None,
        folder: Path | None = None,
        display: Display | None = None,
    ) -> None:
        self.settings = settings
        self._display = display or Display(quiet=True)
        self.stage = stage
        self.phase = settings.preset.of_stage(stage)[phase]
        self.clock = clock or Clock()
        num_envs, config = self.phase.num_envs, self.phase.learner
        self.vec = make_vec(
            settings.env,
            num_envs,
            num_threads=active_plan().world,
            workers=settings.workers,
            timeout=HANGING_SECONDS,
            **settings.phase_options(stage, self.phase),
        )
        self.vocabulary_hash = self.vec.spec.vocabulary_hash
        place = (settings.entry.stages.index(stage), phase)
        self._first, self._segments_seed = phase == 0, derive_seed(seed, SEGMENTS, place[0])
        self.learners: list[Learner] = []
        for i in range(settings.num_learners):
            drawn_from = derive_seed(seed, WEIGHTS, i)
            policy = build_policy(settings.agent, self.vec.spec, settings.policy_options, drawn_from).to(device)
            freeze(policy, settings.frozen(self.phase))
            self.learners.append(config.make_learner(policy, self.vec.spec, num_envs, drawn_from))
        self.players = [
            Player(
                self._policy(i),
                self.vec.spec,
                num_envs,
                torch.Generator().manual_seed(derive_seed(seed, ACTIONS, *place, i)),
                bf16=config.bf16,
            )
            for i in range(settings.agents)
        ]
        self._teacher = None
        self.worker: RolloutWorker | DemonstrationSource
        shared, teaching, draws = settings.preset.team_reward, config.teaching, derive_seed(seed, TEACHER, *place)
        if teaching is not None and (shown := self._demonstrations(teaching, folder, draws)) is not None:
            self.worker = DemonstrationSource(
                shown,
                self.players,
                num_envs,
                config.unroll,
                self.clock,
                shared,
                carry_memory=teaching.carry_memory,
            )
        else:
            if teaching is not None:
                self._teacher = Teacher(make_expert(self.vec, teaching.oracle), teaching.noise, draws)
            self.worker = RolloutWorker(
                self.vec, self.players, config.unroll, self.clock, shared, config.needs, self._teacher
            )
        self._games_seed = derive_seed(seed, GAMES, *place)
        self.steps_per_update = num_envs * config.unroll
        self._faults = 0

    def start(self) -> None:
        """Begin the phase's games; segmenters learn the stage's sentences before its first phase."""
        if self._first:
            self._learn_segments()
        self._compile()
        self.worker.start(self._games_seed)

    def iterate(self, steps: int) -> tuple[FinishedEpisodes, list[dict[str, float]]]:
        """One rollout and one update of each learner.

        Args:
            steps: environment steps of the rate's schedule so far.

        Returns:
            the games that ended, and each learner's losses, with what the log is to hold of its play.
        """
        config = self.phase.learner
        share = config.teacher_share(steps)
        for learner in self.learners:
            learner.explore(steps)
        rollout = self.worker.collect(share, steps)
        since = time.perf_counter()
        trajectories = rollout.joined() if self.settings.share_parameters else rollout.trajectories

        def update(i: int) -> dict[str, float]:
            return {**self.learners[i].update(trajectories[i], steps), **trajectories[i].metrics}

        losses = list(map_agents(update, range(len(self.learners))))
        self.clock.add("learning", since)
        return rollout.episodes, losses

    def evaluate(
        self,
        evaluation_set: str,
        games: int,
        seed: int,
        greedy: bool = True,
        manual: str = TRUE_MANUAL,
        tell: Tell = lambda finished: None,
    ) -> Evaluation:
        """Play games of an evaluation set with the weights as they are; nothing of the training changes.

        Args:
            evaluation_set: its name.
            games: how many.
            seed: of the first.
            greedy, manual, tell: see `magrounding.play.evaluate`.
        """
        since = time.perf_counter()
        team = self._team()
        options = self.settings.stage_options(self.stage, evaluation_set)
        result = evaluate(
            team,
            self.settings.env,
            options,
            games,
            seed,
            greedy=greedy,
            manual=manual,
            num_threads=active_plan().world,
            workers=self.settings.workers,
            tell=tell,
        )
        self.clock.add("evaluation", since)
        return result

    def plays(self, evaluation_set: str) -> bool:
        """Whether the networks can look at the maps of an evaluation set."""
        shapes = {player.policy.grid_shape for player in self.players} - {None}
        options = self.settings.stage_options(self.stage, evaluation_set)
        return not shapes or shapes == {self.settings.entry.describe(**options).grid.shape}

    @property
    def heeds(self) -> frozenset[str]:
        """See `Team`."""
        return self._team().heeds

    def state(self) -> dict[str, Tensor]:
        """Everything that decides how the phase goes on, by name."""
        games = pack_arrays(self.worker.snapshot(), "games/")
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
        self.worker.resume(games, derive_seed(self._games_seed, steps))

    def trained(self) -> dict[str, Tensor]:
        """Copies of weights and optimiser states: what another phase can start from."""
        return pack_learners(self.learners)

    def inherit(self, tensors: dict[str, Tensor], source: Path, *, optimizer: bool = True) -> None:
        """Take over what `trained` gave."""
        for i, learner in enumerate(self.learners):
            fit_weights(learner.module, select(tensors, f"learner_{i}/weights/"), source)
            if optimizer:
                restore_optimizer(learner, select(tensors, f"learner_{i}/optimizer/"))

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

    def _demonstrations(self, teaching: Teaching, folder: Path | None, seed: int) -> Demonstrations | None:
        """The games that a phase of imitation learns from: the run's files, or games of the expert, recorded once."""
        if self.settings.demonstrations:
            return find_demonstrations(self.settings.demonstrations, self.vec)[1]
        games = teaching.demonstrations
        if not games:
            return None
        path = None if folder is None else folder / self.stage / DEMONSTRATIONS_FILE
        if path is not None and path.exists():
            return Demonstrations.load(path)
        since = time.perf_counter()
        rows, workers = min(games, RECORDED_AT_ONCE), self.settings.workers
        vec = make_vec(self.settings.env, rows, num_threads=active_plan().world, workers=workers, **self.vec.options)
        try:
            with self._display.games(f"recording the expert: {self.stage}", games) as tell:
                expert = make_expert(vec, teaching.oracle)
                shown = record(vec, expert, games, RECORDING_SEED + seed, "the expert", tell=tell)
        finally:
            vec.close()
        if path is not None:
            shown.save(path)
        self.clock.add("teaching", since)
        return shown

    def _team(self) -> Team:
        return Team([player.policy for player in self.players], self.vec.spec)

    def _policy(self, agent: int) -> Policy:
        """The network that plays for an agent."""
        return self.learners[0 if self.settings.share_parameters else agent].policy_of(agent)

    def _learn_segments(self) -> None:
        """Let what finds statements in running text learn it, the same in all networks."""
        since, networks = time.perf_counter(), [each.module for each in self.learners]
        segmenters = segmenters_of([*networks, *(player.policy for player in self.players)])
        if segmenters:
            learnt = learn_segments_of(type(segmenters[0]), self.settings, self.stage, self._segments_seed).state_dict()
            for each in segmenters:
                each.load_state_dict(learnt)
            self.clock.add("teaching", since)

    def _compile(self) -> None:
        """Run every kernel of simulator, teacher and network once, so that no clock of training sees it compiled.

        Games begin anew afterwards, and the network is a copy: nothing of it remains.
        """
        since = time.perf_counter()
        said = f"compiling {self.settings.env}, the first time on this machine: about 20 s on two idle cores"
        with compiled_beside(self._called_later(), lambda: self._display.say(said)):
            observation, info = self.vec.reset(seed=self._games_seed)
            self.vec.step(np.zeros((self.vec.num_envs, self.vec.num_agents), np.int64))
        if self._teacher is not None:
            self._teacher.label()
        call_network(copy.deepcopy(self.players[0].policy), self.vec.spec, observation, info.document)
        self.clock.add("starting", since)

    def _called_later(self) -> list[Task]:
        """What calls the kernels of network and teacher, without those of the simulator."""
        policy, spec, num_envs = self.players[0].policy, self.vec.spec, self.vec.num_envs
        tasks: list[Task] = []
        if next(policy.parameters()).device.type == "cpu":
            tasks.append((call_network, (policy, spec, spec.allocate(num_envs), np.zeros(num_envs, np.int64))))
        teaching = self.phase.learner.teaching
        if self._teacher is not None and teaching is not None and isinstance(self.vec, WorldVectorEnv):
            tasks.append((call_expert, (self.vec.id, self.vec.options, teaching.oracle)))
        return tasks
